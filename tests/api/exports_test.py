#!/usr/bin/env python3
"""The libraries export the interfaces and nothing else. Arguments: their files."""

import re
import subprocess
import sys

ALLOWED = re.compile(r"(tp_\w+$|tp::|(typeinfo|typeinfo name|vtable) for tp::Error$)")


def main():
    for library in sys.argv[1:]:
        names = subprocess.run(["nm", "-D", "-C", "--defined-only", library], check=True,
                               stdout=subprocess.PIPE, text=True).stdout.splitlines()
        names = [line.split(None, 2)[2] for line in names]
        others = [name for name in names if not ALLOWED.match(name)]
        if others or not names:
            sys.exit(f"{library}: {len(names)} names, of which are not its own: {others[:10]}")
        print(f"{library}: {len(names)} names")


if __name__ == "__main__":
    main()
