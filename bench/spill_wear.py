#!/usr/bin/env python3
"""Whether a training beside a file writes what it says: its wear line against the sectors that the
kernel counts for the disk below it.

  bench/spill_wear.py build/release/cli/tidepool DIR [--model vgg16] [--batch 100] [--memory 256MiB]
                      [--iterations 12] [--turns 3] [-- OPTIONS OF TRAIN]

Sectors written are those of /sys/dev/block/*/stat of the disk that DIR lies on (512 B each). What is
not of iterations (the cache, entering) is the same in a short training: that is subtracted. Others may
write to the disk at the same time: what it wrote in three seconds before is said beside. Some minutes."""

import argparse
import json
import os
import subprocess
import sys
import time

SECTOR = 512


def disk_of(folder):
    """The counters of the disk below a folder: those of the whole device."""
    device = os.stat(folder).st_dev
    path = os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not os.path.exists(path):
        sys.exit(f"{folder}: no disk of the kernel's lies below it")
    if os.path.exists(os.path.join(path, "partition")):
        path = os.path.dirname(path)
    return os.path.basename(path), os.path.join(path, "stat")


def written(stat):
    with open(stat) as file:
        return int(file.read().split()[6]) * SECTOR


def trained(options, stat, iterations):
    """Runs it. Returns its report and what the disk wrote during the whole run."""
    before = written(stat)
    begun = time.monotonic()
    done = subprocess.run([*options, "--iterations", str(iterations), "--json"],
                          capture_output=True, text=True)
    seconds = time.monotonic() - begun
    if done.returncode != 0:
        sys.exit(f"{' '.join(options)}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout), written(stat) - before, seconds


def idle(stat, seconds):
    before = written(stat)
    time.sleep(seconds)
    return (written(stat) - before) / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidepool")
    parser.add_argument("folder")
    parser.add_argument("--model", default="vgg16")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--turns", type=int, default=3)
    here, more = sys.argv[1:], []
    if "--" in here:
        here, more = here[:here.index("--")], here[here.index("--") + 1:]
    a = parser.parse_args(here)
    name, stat = disk_of(a.folder)
    train = [a.tidepool, "train", a.model, "--batch", str(a.batch), "--sub-batch", str(a.batch),
             "--data", "synthetic", "--memory", a.memory, "--spill", a.folder, *more]
    # Planning writes to the cache, a file that is opened takes its blocks, and entering writes what
    # is at rest in the file: all of that is the same in a long and in a short training, so their
    # difference is that of iterations alone. The first run fills the cache.
    few = 2
    trained(train, stat, few)
    print(f"{a.model} at batch {a.batch} in {a.memory}, {a.folder} on {name}; {a.iterations} "
          f"iterations less {few}")
    for _ in range(a.turns):
        quiet = idle(stat, 3)
        short, of_short, short_seconds = trained(train, stat, few)
        long, of_long, long_seconds = trained(train, stat, few + a.iterations)
        memory = long["memory"]
        said = memory["written_bytes_per_iteration"]
        other = quiet * (long_seconds - short_seconds) / a.iterations
        counted = (of_long - of_short) / a.iterations
        print(f"  said {said / 2**20:9.2f} MiB an iteration, counted {counted / 2**20:9.2f} "
              f"({100 * (counted / said - 1) if said else 0:+6.2f} %), of which others about "
              f"{other / 2**20:.2f}; {memory['file']}")


if __name__ == "__main__":
    main()
