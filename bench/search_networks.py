#!/usr/bin/env python3
"""How far plans stay from the bound, on networks of other systems (tools/network_program.py):

  bench/search_networks.py build/release/cli/tidepool --work build/networks
  bench/search_networks.py NEW --before OLD --programs light_vgg19,unet-6 --budgets 60,40

One line a program and budget (percent of its peak): overhead by autoswap, by tide of each binary,
one after the other, and the least by the bound. Bounds are kept in WORK/bounds.json; where one
takes longer than --bound-limit there is none, and the cell does not count. At the end the excess:
the geometric mean of (1 + tide) / (1 + bound), minus one."""

import argparse
import contextlib
import glob
import json
import math
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))

from network_program import READERS, make_program  # noqa: E402

BATCH = {"vgg416": 33}
PATTERNS = ("layer-graphs/*.graph.txt", "layer-graphs/*.layers.csv", "onnx/*.onnx",
            "traces/dtr/*.log.gz")


def make_programs(data, work, only):
    """Paths of program files by name, the smallest first."""
    paths = {}
    for source in sorted(p for pattern in PATTERNS for p in glob.glob(os.path.join(data, pattern))):
        suffix = next(s for s in READERS if source.endswith(s))
        name = os.path.basename(source)[:-len(suffix)]
        if only and name not in only:
            continue
        program = make_program(source, BATCH.get(name, 64))
        paths[name] = (len(program["ops"]), os.path.join(work, name + ".json"))
        with open(paths[name][1], "w", encoding="utf-8") as file:
            json.dump(program, file)
    return {name: path for name, (_, path) in sorted(paths.items(), key=lambda item: item[1])}


def tidepool(binary, command, path, budget, machine, options, limit=None):
    """The JSON it prints; None where it takes longer than `limit` seconds."""
    run = [binary, command, "--program", path, "--machine", machine, "--budget", f"{budget}%",
           "--no-cache", "--json", *options]
    try:
        done = subprocess.run(run, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)


class Bounds:
    def __init__(self, arguments):
        self.arguments = arguments
        self.path = os.path.join(arguments.work, "bounds.json")
        self.known = {}
        with contextlib.suppress(FileNotFoundError), open(self.path, encoding="utf-8") as file:
            self.known = json.load(file)

    def overhead(self, name, path, budget):
        key = f"{name} {budget} {self.arguments.machine}"
        if key not in self.known and self.arguments.bound_limit > 0:
            found = tidepool(self.arguments.tidepool, "bound", path, budget,
                             self.arguments.machine, [], self.arguments.bound_limit)
            self.known[key] = found and found.get("least_overhead_swapping")
            with open(self.path, "w", encoding="utf-8") as file:
                json.dump(self.known, file, indent=1)
        return self.known.get(key)


def percent(overhead):
    return "     none" if overhead is None else f"{100 * overhead:8.2f}%"


def cell(arguments, name, path, budget, bound):
    """autoswap's overhead and tide's of each binary."""
    binaries = [b for b in (arguments.before, arguments.tidepool) if b]
    plans = [tidepool(arguments.tidepool, "plan", path, budget, arguments.machine,
                      ["--planner", "autoswap"])]
    for binary in binaries:
        plans.append(tidepool(binary, "plan", path, budget, arguments.machine,
                              ["--planner", "tide", "--time-limit", arguments.time_limit,
                               "--seed", str(arguments.seed)]))
    overheads = [plan.get("predicted_overhead") for plan in plans]
    took = plans[-1].get("plan_ms", 0) / 1000
    print(f"{name:18} {budget:3}% {' '.join(map(percent, overheads + [bound]))} {took:6.1f} s  "
          f"{'; '.join(plans[-1].get('notes', []))}", flush=True)
    return overheads[1:]


def excess(pairs):
    logs = [math.log((1 + tide) / (1 + bound)) for tide, bound in pairs]
    return math.exp(sum(logs) / len(logs)) - 1 if logs else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidepool")
    parser.add_argument("--before", help="another binary to compare with")
    parser.add_argument("--data", default=os.path.join(ROOT, "..", "shared", "data"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "networks"))
    parser.add_argument("--machine", default="gtx1080ti")
    parser.add_argument("--time-limit", default="10s")
    parser.add_argument("--bound-limit", type=float, default=600, help="seconds; 0: only known ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=lambda s: s.split(","), default=[])
    parser.add_argument("--budgets", type=lambda s: [int(b) for b in s.split(",")],
                        default=[80, 70, 60, 50, 40])
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)
    bounds = Bounds(arguments)
    pairs = []
    for name, path in make_programs(arguments.data, arguments.work, arguments.programs).items():
        for budget in arguments.budgets:
            bound = bounds.overhead(name, path, budget)
            found = cell(arguments, name, path, budget, bound)
            if bound is not None and None not in found:
                pairs.append([(tide, bound) for tide in found])
    print(f"{len(pairs)} cells with a bound; excess of tide: " +
          ", ".join(f"{100 * excess(column):.2f} %" for column in zip(*pairs)))


if __name__ == "__main__":
    main()
