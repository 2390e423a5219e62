#!/usr/bin/env python3
"""Checks the include directions between the folders of src/ and of the programs beside it (HACKING.md,
"Who may include whom").

Prints one line a violation, `file:line: message`, and exits with 1 when there is any.
tests/ and bench/ may include everything and are not checked.
"""

import re
import sys

sys.dont_write_bytecode = True
import findings  # noqa: E402

# What each folder builds on. A folder may also include what those build on in turn.
BUILDS_ON = {
    "base": [],
    "ir": ["base"],
    "cost": ["ir"],
    "schedule": ["ir"],
    "check": ["ir", "schedule"],
    "pack": ["base"],
    "lower": ["cost", "schedule", "pack", "check"],
    "bound": ["cost"],
    "planners": ["lower", "check", "bound"],
    "sim": ["schedule", "cost"],
    "trace": ["ir", "cost"],
    "device": ["base"],
    "runtime": ["lower", "device", "trace"],
    "nn": ["ir", "device"],
    "planning": ["planners", "sim", "trace"],
    "session": ["planning", "runtime"],
    "job": ["planning", "nn"],
    "measure": ["job", "runtime"],
    "train": ["measure", "session"],
    "report": ["lower", "sim"],
    "api": ["planning", "report", "session"],
}

# Programs include all of src/, their own headers, and of other programs these.
PROGRAMS = {
    "cli": [],
    "reproduce": ["cli/context.h", "cli/program.h", "cli/smartpool.h"],
}

# Single headers a folder may include besides.
EXTRA_HEADERS = {"nn": ["runtime/op_runner.h"], "api": ["train/train.h"]}

# Subfolders that nothing but their own files, and those in the folders listed, may include: backends,
# and the inside of a folder whose face are the headers beside them.
PRIVATE = {
    "device/cpu": ["nn/kernels/cpu", "job/devices", "api/session"],
    "device/cuda": ["nn/kernels/cuda", "job/devices"],
    "device/file": ["device/cpu", "device/cuda", "job/devices"],
    "nn/kernels/cpu": ["job/devices"],
    "nn/kernels/cuda": ["job/devices"],
    "planners/published/dqn/torch/module": [],
    "lower/composing": ["lower"],
    "lower/expanding": ["lower"],
    "lower/placing": ["lower"],
    "lower/timing": ["lower"],
    "bound/clp/module": [],
}

# Whose headers are in one folder only.
TORCH_HEADER = re.compile(r"^(torch|ATen|c10|caffe2)/")
TORCH_FOLDER = "planners/published/dqn/torch/module"

VENDOR_HEADER = re.compile(
    r"^(coin/|Eigen/|dnnl|oneapi|mkldnn|cuda|cudnn|cublas|curand|nvtx|nccl|omp\.h)")
VENDOR_FOLDERS = ("bound/clp/module", "planners", "device/cpu", "device/cuda", "nn/kernels/cpu",
                  "nn/kernels/cuda")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def closure(folder):
    """All folders that `folder` may include, itself first."""
    reached = [folder]
    for f in reached:
        reached += [g for g in BUILDS_ON[f] if g not in reached]
    return reached


def inside(path, folder):
    return path.startswith(folder + "/")


def private_error(path, header):
    """What is wrong with `path` including `header` if this is a vendor's or one of a private folder."""
    if TORCH_HEADER.match(header) and not inside(path, TORCH_FOLDER):
        return f"header of libtorch <{header}> outside {TORCH_FOLDER}"
    if VENDOR_HEADER.match(header):
        if any(inside(path, f) for f in VENDOR_FOLDERS):
            return None
        return f"vendor header <{header}> outside {', '.join(VENDOR_FOLDERS)}"
    for private, friends in PRIVATE.items():
        if inside(header, private) and not any(inside(path, f) for f in [private, *friends]):
            owners = " and ".join(f"{folder}/" for folder in friends or [private])
            return f"{private}/ is private: only {owners} may include {header}"
    return None


def include_error(path, quote, header, src):
    """What is wrong with file `path` (below src/) including `header`; None when nothing is."""
    if error := private_error(path, header):
        return error
    if quote == "<":
        first = header.split("/")[0]
        if "/" in header and first in BUILDS_ON:
            return f'the project\'s own header is included with "{header}", not <{header}>'
        return None
    folder, target = path.split("/")[0], header.split("/")[0]
    if target == "tidepool":  # the public headers
        known = (src.parent / "include" / header).is_file()
        if folder != "api":
            return f"only api/ may include the public header {header}"
        return None if known else f"no file include/{header}"
    if not (src / header).is_file():
        return f'no file src/{header}: paths start at src/'
    if header in EXTRA_HEADERS.get(folder, []):
        return None
    allowed = closure(folder)
    if target not in allowed:
        extra = EXTRA_HEADERS.get(folder, [])
        return f"{folder}/ may not include {header}; it may include: {', '.join(allowed + extra)}"
    return None


def program_error(file, quote, header, program):
    """What is wrong with `file` of the folder `program` including `header`; None when nothing is."""
    if error := private_error(f"{program.name}/{file.name}", header):
        return error
    others = PROGRAMS[program.name]
    places = [file.parent, program.parent / "src"]
    if quote == "<" or header in others:
        return None
    if not header.startswith("..") and any((place / header).is_file() for place in places):
        return None
    return f"{program.name}/ may not include {header}; of other programs it may: {', '.join(others) or 'none'}"


def check_file(file, folder):
    path = file.relative_to(folder).as_posix()
    if folder.name in PROGRAMS:
        def error_of(quote, header):
            return program_error(file, quote, header, folder)
    elif path.split("/")[0] in BUILDS_ON:
        def error_of(quote, header):
            return include_error(path, quote, header, folder)
    else:
        yield 1, f"folder {path.split('/')[0]}/ is not in the list of tools/check_includes.py"
        return
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        error = match and error_of(match[1], match[2])
        if error:
            yield number, error


def main():
    return findings.run(__doc__.splitlines()[0], ["src", *PROGRAMS], check_file)


if __name__ == "__main__":
    sys.exit(main())
