#!/usr/bin/env python3
"""Checks which room of the PyTorch package imports which (HACKING.md, **python**).

Prints one line a violation, `file:line: message`, and exits with 1 when there is any.
"""

import ast
import sys

sys.dont_write_bytecode = True
import findings  # noqa: E402

# What each room imports beside itself.
BUILDS_ON = {
    "base": [],
    "recording": ["base"],
    "planning": ["base", "recording"],
    "running": ["base", "recording", "planning"],
    "form_b": ["base", "running"],
    "foreign": ["base", "planning"],
    "user": ["base", "recording", "planning", "running", "foreign"],
    "integrations": ["user"],
    "": ["base", "foreign", "user"],
}

# The one place that knows both forms.
BESIDES = {"running/forms.py": ["form_b"]}


def rooms_of(node, room):
    """The rooms that an import of a file in `room` is from; none where it is of another package."""
    if isinstance(node, ast.Import):
        names = [a.name.split(".") for a in node.names]
        return [n[1] for n in names if n[0] == "tidepool_torch" and len(n) > 1]
    if node.level == 0:
        names = (node.module or "").split(".")
        return names[1:2] if names[0] == "tidepool_torch" else []
    if node.level != (2 if room else 1):
        return []
    return [node.module.split(".")[0]] if node.module else [a.name for a in node.names]


def check_file(file, folder):
    path = file.relative_to(folder).as_posix()
    room = path.split("/")[0] if "/" in path else ""
    if room not in BUILDS_ON:
        yield 1, f"room {room}/ is not in the list of tools/check_imports.py"
        return
    allowed = [room, *BUILDS_ON[room], *BESIDES.get(path, [])]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        for target in rooms_of(node, room):
            if target not in allowed:
                yield node.lineno, (f"{room or 'the package'} may not import {target}; it may import: "
                                    f"{', '.join(a for a in allowed if a)}")


def main():
    return findings.run(__doc__.splitlines()[0], ["python/tidepool_torch"], check_file, {".py"})


if __name__ == "__main__":
    sys.exit(main())
