#!/usr/bin/env python3
"""Checks that no message of the libraries in src/ names an option of the command line.

A string literal in src/ may not contain `--` before a letter: libraries name fields of their specs in
backquotes, and cli/ says how its options are called (cli/option_names.h). Prints one line a
violation, `file:line: message`, and exits with 1 when there is any.
"""

import re
import sys

sys.dont_write_bytecode = True
import findings  # noqa: E402


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
    return findings.run(__doc__.splitlines()[0], ["src"], lambda file, _: [
        (line, f"a library message names an option: {literal!r}")
        for line, literal in violations(file.read_text(encoding="utf-8"))])


if __name__ == "__main__":
    sys.exit(main())
