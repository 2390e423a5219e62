"""What the checks in this folder share: which files are sources, and how findings are shown."""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = {".h", ".hpp", ".cpp", ".cu", ".cuh", ".in"}


def shown(file):
    try:
        return file.relative_to(Path.cwd())
    except ValueError:
        return file


def run(description, folders, violations, suffixes=frozenset(SUFFIXES)):
    """Prints `file:line: message` for every pair that `violations(file, folder)` gives for the files with
    `suffixes` of the folders named on the command line (default: `folders` of the project). The exit
    status: 1 when there is any."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT / f for f in folders],
                        help="default: " + ", ".join(folders))
    checked = found = 0
    for folder in parser.parse_args().folders:
        if not folder.is_dir():
            parser.error(f"{folder} is not a folder")
        folder = folder.resolve()
        for file in sorted(f for f in folder.rglob("*") if f.suffix in suffixes):
            checked += 1
            for line, message in violations(file, folder):
                print(f"{shown(file)}:{line}: {message}")
                found += 1
    print(f"{checked} files, {found} violations", file=sys.stderr)
    return 1 if found else 0
