#!/usr/bin/env python3
"""How near the times of a fake profiling are to real ones, on models that fit:

  bench/fake_profiling.py build/release/cli/tidepool [--models vgg16 resnet18-cifar] [--turns 5]

Both kinds of profile are measured in turns, without a cache. Of every op and algorithm the median over
the turns is taken. Two lines a model: the sum over the ops of an iteration (least workspaces) and the
median over ops of how far fake times are from real ones (of ops that take at least a thousandth of the
iteration: others are within the clock's noise), then the same of one half of the real turns against the
other half, which is what this machine's noise alone makes. Bound: 5 %. Some minutes."""

import argparse
import json
import statistics
import subprocess
import sys


def times(tidepool, model, batch, extra, fake):
    """Nanoseconds by (op, algorithm), and the op names in order with their least-workspace algorithm."""
    run = [tidepool, "profile", model, "--batch", str(batch), "--json", "--no-cache", *extra,
           *(["--fake"] if fake else [])]
    done = subprocess.run(run, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(run)}: {done.stderr}")
    report = json.loads(done.stdout)
    if report["profile"]["fake"] != fake:
        sys.exit(f"{' '.join(run)}: is fake or not, against what was asked")
    found = {}
    for i, op in enumerate(report["program"]["ops"]):
        if op["place"] != "device":
            continue
        least = min(range(len(op["algorithms"])),
                    key=lambda a: (op["algorithms"][a]["workspace"], a))
        found[(i, op["name"])] = op["algorithms"][least]["time_ns"]
    return found, report["profile"]


def medians(turns):
    return {op: statistics.median(t[op] for t in turns) for op in turns[0]}


def compare(name, found, real):
    total = sum(real.values())
    off = {op: found[op] / real[op] - 1 for op in real if real[op] >= total / 1000}
    worst = max(off, key=lambda op: abs(off[op]))
    middle = statistics.median(abs(x) for x in off.values())
    print(f"  {name:24} sum {sum(found.values()) / 1e6:9.1f} ms against {total / 1e6:9.1f} ms: "
          f"{100 * (sum(found.values()) / total - 1):+5.1f} %; per op median "
          f"{100 * statistics.median(off.values()):+5.1f} %, median distance {100 * middle:4.1f} %, "
          f"worst {100 * off[worst]:+5.1f} % ({worst[1]}, {real[worst] / 1e6:.2f} ms)")
    return abs(sum(found.values()) / total - 1), abs(statistics.median(off.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidepool")
    parser.add_argument("--models", nargs="*", default=["vgg16", "resnet18-cifar"])
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--extra", nargs=argparse.REMAINDER, default=["--data", "synthetic"],
                        help="further options of tidepool, at the end")
    arguments = parser.parse_args()
    sound = True
    for model in arguments.models:
        real, fake = [], []
        for _ in range(arguments.turns):
            for kind, turns in ((False, real), (True, fake)):
                found, how = times(arguments.tidepool, model, arguments.batch, arguments.extra, kind)
                turns.append(found)
                peak = how["arena_peak_bytes"] / 2**20
                print(f"  {'fake' if kind else 'real'}: {sum(found.values()) / 1e6:9.1f} ms, "
                      f"highest byte used {peak:.1f} MiB", file=sys.stderr)
        print(f"{model}, batch {arguments.batch}, medians of {arguments.turns} turns")
        off = compare("fake against real", medians(fake), medians(real))
        if arguments.turns > 1:
            compare("real against itself", medians(real[1::2]), medians(real[::2]))
        sound = sound and max(off) <= 0.05
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
