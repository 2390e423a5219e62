#!/usr/bin/env python3
"""Checks the include directions between the folders of src/ (HACKING.md, "Who may include whom").

Prints one line a violation, `file:line: message`, and exits with 1 when there is any.
cli/, tests/ and bench/ may include everything and are not checked.
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
    "train": ["planners", "sim", "trace", "runtime", "nn"],
    "report": ["lower", "sim"],
}

# Single headers a folder may include besides.
EXTRA_HEADERS = {"nn": ["runtime/op_runner.h"]}

# Subfolders that nothing but their own files, and those listed, may include: backends.
PRIVATE = {
    "device/cpu": ["nn/kernels/cpu", "train/devices"],
    "device/cuda": ["nn/kernels/cuda", "train/devices"],
    "device/file": ["device/cpu", "device/cuda"],
    "nn/kernels/cpu": ["train/devices"],
    "nn/kernels/cuda": ["train/devices"],
    "planners/dqn/torch/module": [],
}

# Whose headers are in one folder only.
TORCH_HEADER = re.compile(r"^(torch|ATen|c10|caffe2)/")
TORCH_FOLDER = "planners/dqn/torch/module"

VENDOR_HEADER = re.compile(
    r"^(coin/|Eigen/|dnnl|oneapi|mkldnn|cuda|cudnn|cublas|curand|nvtx|nccl|omp\.h)")
VENDOR_FOLDERS = ("bound", "planners", "device/cpu", "device/cuda", "nn/kernels/cpu",
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


def include_error(path, quote, header, src):
    """What is wrong with file `path` (below src/) including `header`; None when nothing is."""
    if TORCH_HEADER.match(header) and not inside(path, TORCH_FOLDER):
        return f"header of libtorch <{header}> outside {TORCH_FOLDER}"
    if VENDOR_HEADER.match(header):
        if any(inside(path, f) for f in VENDOR_FOLDERS):
            return None
        return f"vendor header <{header}> outside {', '.join(VENDOR_FOLDERS)}"
    if quote == "<":
        first = header.split("/")[0]
        if "/" in header and first in BUILDS_ON:
            return f'the project\'s own header is included with "{header}", not <{header}>'
        return None
    folder, target = path.split("/")[0], header.split("/")[0]
    if not (src / header).is_file():
        return f'no file src/{header}: paths start at src/'
    for private, friends in PRIVATE.items():
        if inside(header, private) and not any(inside(path, f) for f in [private, *friends]):
            return f"{private}/ is a backend: only its own folder may include {header}"
    if header in EXTRA_HEADERS.get(folder, []):
        return None
    allowed = closure(folder)
    if target not in allowed:
        extra = EXTRA_HEADERS.get(folder, [])
        return f"{folder}/ may not include {header}; it may include: {', '.join(allowed + extra)}"
    return None


def check_file(file, src):
    path = file.relative_to(src).as_posix()
    if path.split("/")[0] not in BUILDS_ON:
        yield 1, f"folder {path.split('/')[0]}/ is not in the list of tools/check_includes.py"
        return
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        error = match and include_error(path, match[1], match[2], src)
        if error:
            yield number, error


def main():
    return findings.run(__doc__.splitlines()[0], ["src"], check_file)


if __name__ == "__main__":
    sys.exit(main())
