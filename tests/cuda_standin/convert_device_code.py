#!/usr/bin/env python3
"""Turns a .cu file into C++ for the CUDA stand-in: launches become calls, shared variables are told.

    convert_device_code.py INPUT.cu OUTPUT.cpp
"""
import re
import sys

# kernel<<<configuration>>>(arguments);
LAUNCH = re.compile(r"(\w+)<<<(.*?)>>>\((.*?)\);", re.DOTALL)
# __shared__ type declarator[, declarator...];
SHARED = re.compile(r"__shared__\s+([^;]+);")
DECLARATOR = re.compile(r"(\w+)(?:\[[^\]]*\])*\s*(?:,|$)")


def converted(text, name):
    """The C++, and how many launches it has. Lines keep their numbers."""

    def call(match):
        kernel, configuration, arguments = match.groups()
        return (f'standin::launch("{kernel}", [=] {{ {kernel}({arguments}); }}, '
                f"{configuration});")

    def declaration(match):
        told = "".join(f" standin::shared_variable(&{variable}, sizeof {variable});"
                       for variable in DECLARATOR.findall(match.group(1)))
        return match.group(0) + told

    body, launches = LAUNCH.subn(call, text)
    body = SHARED.sub(declaration, body)
    if "<<<" in body:
        raise SystemExit(f"{name}: a launch that is not understood")
    return f'#include "cuda_standin/device_code.h"\n#line 1 "{name}"\n{body}', launches


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        body, launches = converted(file.read(), source)
    if launches == 0:
        raise SystemExit(f"{source}: no launch in it")
    with open(target, "w", encoding="utf-8") as file:
        file.write(body)


if __name__ == "__main__":
    main()
