#!/usr/bin/env python3
"""Checks that no two types of the sources have the same name in the same namespace.

The linker keeps one copy of what the compiler makes of templates, such as a vector's growth: of two
types of one name it would use the one for both. Types in unnamed namespaces, and those inside of
other types, are their file's own. Prints one line a violation, `file:line: message`, and exits with
1 when there is any.
"""

import re
import sys

sys.dont_write_bytecode = True
import findings  # noqa: E402

NAMESPACE = re.compile(r"(?:inline )?namespace(?: ([\w:]+))? \{$")
END = re.compile(r"\}\s*// namespace")
TYPE = re.compile(r"(?:struct|class|enum class|enum|union) (\w+)(?: final)?(?:\s*:[^;:]\S.*)? \{")


def types(source):
    """Pairs (line, qualified name) of the types that `source` defines at the level of namespaces."""
    inside = []
    for number, line in enumerate(source.splitlines(), 1):
        if begin := NAMESPACE.match(line):
            inside.append(begin[1])
        elif END.match(line) and inside:
            inside.pop()
        elif None not in inside and (found := TYPE.match(line)):
            yield number, "::".join([*inside, found[1]])


def main():
    seen = {}

    def violations(file, _):
        for line, name in types(file.read_text(encoding="utf-8")):
            if name in seen:
                yield line, f"{name} is a type of {findings.shown(seen[name])} too"
            seen.setdefault(name, file)

    return findings.run(__doc__.splitlines()[0], ["src", "cli", "reproduce"], violations)


if __name__ == "__main__":
    sys.exit(main())
