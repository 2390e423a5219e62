#!/usr/bin/env python3
"""Checks that no message of the libraries in src/ names an option of the command line.

A string literal in src/ may not contain `--` before a letter: libraries name fields of their specs in
backquotes, and cli/ says how its options are called (cli/option_names.h). Prints one line a
violation, `file:line: message`, and exits with 1 when there is any.
"""

import argparse
import re
import sys
from pathlib import Path

SUFFIXES = {".h", ".hpp", ".cpp", ".cu", ".cuh", ".in"}

# Comments, character and string literals, raw ones too, in the order in which they may begin.
TOKEN = re.compile(
    r"""//[^\n]*
      | /\*.*?\*/
      | R"(?P<fence>[^()\s\\]*)\((?P<raw>.*?)\)(?P=fence)"
      | '(?:\\.|[^'\\\n])+'
      | "(?P<text>(?:\\.|[^"\\\n])*)\"""",
    re.VERBOSE | re.DOTALL)
OPTION = re.compile(r"--[A-Za-z]")


def violations(source):
    """Pairs (line, literal) of the literals in `source` that name an option."""
    for token in TOKEN.finditer(source):
        literal = token["text"] if token["text"] is not None else token["raw"]
        if literal is not None and OPTION.search(literal):
            at = token.start() + OPTION.search(token[0]).start()
            yield source.count("\n", 0, at) + 1, literal


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("src", nargs="?", type=Path, default=root / "src", help="default: src/")
    src = parser.parse_args().src.resolve()
    if not src.is_dir():
        parser.error(f"{src} is not a folder")
    files = sorted(f for f in src.rglob("*") if f.suffix in SUFFIXES)
    found = 0
    for file in files:
        for line, literal in violations(file.read_text(encoding="utf-8")):
            print(f"{file}:{line}: a library message names an option: {literal!r}")
            found += 1
    print(f"{len(files)} files, {found} violations", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
