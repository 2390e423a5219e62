"""Ten minutes on a GPU: what the package rests on there, then what a budget costs.

    python3 -m gpu_check --out FOLDER [--minutes 9] [--only primitives,cap]

Each stage is a process with a limit of its own: an error of CUDA's ends a process's context. Each fact is a
line of FOLDER/results.jsonl as soon as it is known, so whatever ends early leaves what it found, and
FOLDER/table.md has the trainings. TIDEPOOL_CHECK_DEVICE=sim runs all of it, smaller, on python/simgpu.
"""

import argparse
import os
import subprocess
import sys
import time

from . import facts, on_device, package, tables, trainings

# (what runs, seconds at most), what decides most first.
STAGES = {
    "environment": (on_device.environment, 40), "primitives": (on_device.primitives, 40),
    "streams": (on_device.streams, 40), "engine": (on_device.engine, 30),
    "allocator": (on_device.allocator, 40), "package_small": (package.package_small, 60),
    "gpt2_bf16": (trainings.compare_gpt2, 120), "resnet50_fp32": (trainings.compare_resnet, 110),
    "cap": (package.cap, 45), "llama_bf16": (trainings.compare_llama, 90),
    "resnet50_bf16": (trainings.compare_resnet_bf16, 70), "largest_batch": (trainings.largest_batch, 80),
    "sanitizer": (package.sanitizer, 45)}


def main():
    parser = argparse.ArgumentParser(prog="gpu_check", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", required=True, help="folder for results.jsonl and table.md")
    parser.add_argument("--minutes", type=float, default=9.0, help="in all (default: 9)")
    parser.add_argument("--only", default="", help=f"some of {','.join(STAGES)}")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--training", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    os.environ["TIDEPOOL_CHECK_OUT"] = chosen.out
    if chosen.training:
        trainings.run_one(chosen.training)
        return 0
    if chosen.stage:
        facts.prepare()
        STAGES[chosen.stage][0]()
        return 0
    only = [name for name in chosen.only.split(",") if name]
    unknown = [name for name in only if name not in STAGES]
    if unknown:
        parser.error(f"--only: no stage is called {unknown[0]!r}; there are {', '.join(STAGES)}")
    os.makedirs(chosen.out, exist_ok=True)
    try:
        return _run(only or list(STAGES), chosen.out, time.monotonic() + 60 * chosen.minutes)
    finally:
        tables.write(chosen.out)


def _run(names, out, end):
    failed = 0
    for name in names:
        left = min(STAGES[name][1], end - time.monotonic())
        if left < 5:
            facts.say(name, skipped="no time left")
            continue
        command = [sys.executable, "-m", "gpu_check", "--out", out, "--stage", name]
        environment = {**os.environ, "TIDEPOOL_CHECK_SECONDS": str(left - 3)}
        try:
            code = subprocess.run(command, timeout=left, env=environment, check=False).returncode
        except subprocess.TimeoutExpired:
            code = f"cut off after {left:.0f} s"
        if code:
            failed += 1
            facts.say(name, ended_with=code)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
