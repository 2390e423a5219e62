#!/usr/bin/env python3
"""Overheads of planners beside what no plan undercuts, with the same time for each:

  bench/planner_table.py build/release networks --out RESULTS.json [--planners auto tide]
  bench/planner_table.py build/release models --out RESULTS.json [--machines k40] [--budgets 30]
  bench/planner_table.py build/release RESULTS.json           prints what is there

`networks` are those of ../shared/data (tools/network_program.py), in which forward ops may run
again, on the preset gtx1080ti; `models` are Tidepool's own at batch 100, with a choice of
algorithms, on four presets. Budgets are percentages of the peak. The clock is the processor time of
the process, halved (preload/processor_clock.cpp): a limit of 10 s is 20 s of processor time,
whatever else runs.

RESULTS.json has a line for each cell, with the commit of the program; cells that are there already
for the same commit are not run again, so that Ctrl-C loses two cells at most."""

import argparse
import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(os.path.dirname(ROOT), "shared", "data")
# Networks, and samples where the file leaves them open.
NETWORKS = {"onnx/light_bvlc_alexnet.onnx": 64, "onnx/light_squeezenet.onnx": 64,
            "onnx/light_vgg19.onnx": 64, "onnx/light_inception_v1.onnx": 64,
            "onnx/light_resnet50.onnx": 64, "layer-graphs/vgg16.graph.txt": 64,
            "layer-graphs/resnet50.graph.txt": 64, "layer-graphs/inception_v3.graph.txt": 64,
            "layer-graphs/vgg416.layers.csv": 33, "traces/dtr/resnet32-56.log.gz": 0,
            "traces/dtr/unet-6.log.gz": 0, "traces/dtr/lstm-128.log.gz": 0}
MODELS = ["vgg16", "resnet18-cifar", "transformer", "mobilenet", "unet", "resnet50-cifar",
          "resnet50", "bert-base", "inceptionv3", "squeezenet", "vgg16-imagenet", "char-lstm"]
MACHINES = ["gtx1080ti", "k40", "rtx2080ti", "h200"]
BUDGETS = {"networks": [80, 70, 60, 50, 40, 30], "models": [75, 60, 50, 40, 30]}
PLANNERS = ["auto", "tide", "autoswap", "home"]
INFEASIBLE = 4  # the program's exit code


def programs(folder):
    """{name: program file}, made in `folder`."""
    made = {}
    for file, batch in NETWORKS.items():
        name = os.path.basename(file).split(".")[0]
        if file.startswith("layer-graphs") and file.endswith(".graph.txt"):
            name = "pd-" + name  # of PipeDream
        made[name] = os.path.join(folder, name + ".json")
        subprocess.run([sys.executable, os.path.join(ROOT, "tools/network_program.py"),
                        os.path.join(DATA, file), "--batch", str(batch), "-o", made[name]],
                       check=True, stdout=subprocess.DEVNULL)
    return made


def cells(arguments, folder):
    """(name, machine, budget, planner, what the program is asked)"""
    if arguments.what == "networks":
        subjects = {name: ["--program", file] for name, file in programs(folder).items()}
        machines = ["gtx1080ti"]
    else:
        subjects = {name: [name, "--algorithms", "auto"] for name in MODELS}
        machines = arguments.machines
    for budget in arguments.budgets or BUDGETS[arguments.what]:
        for name, subject in subjects.items():
            if arguments.only and name not in arguments.only:
                continue
            for machine in machines:
                for planner in arguments.planners:
                    yield name, machine, budget, planner, subject


class Table:
    def __init__(self, arguments):
        self.build = arguments.build
        self.limit = arguments.limit
        self.file = arguments.out
        self.lock = threading.Lock()
        self.preload = os.path.join(self.build, "bench", "libprocessor_clock.so")
        self.program = os.path.join(self.build, "cli", "tidepool")
        for file in (self.preload, self.program):
            if not os.path.exists(file):
                sys.exit(f"{file} is not there: configure with -D TIDEPOOL_BENCHMARKS=ON and build "
                         "the targets tidepool and benchmarks")
        self.commit = arguments.commit or subprocess.run(
            ["git", "-C", ROOT, "describe", "--always", "--dirty"], check=True,
            capture_output=True, text=True).stdout.strip()
        self.done = {key(row) for row in read(self.file) if row["commit"] == self.commit}

    def run(self, cell):
        name, machine, budget, planner, subject = cell
        row = {"name": name, "machine": machine, "budget": budget, "planner": planner,
               "limit": self.limit, "commit": self.commit}
        if key(row) in self.done:
            return
        command = [self.program, "plan", *subject, "--machine", machine, "--budget", f"{budget}%",
                   "--planner", planner, "--time-limit", self.limit, "--no-cache", "--json"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False,
                             env=os.environ | {"LD_PRELOAD": self.preload})
        if ran.returncode not in (0, INFEASIBLE):
            sys.exit(f"{' '.join(command)}\n{ran.stdout}{ran.stderr}")
        if ran.returncode == 0:
            plan = json.loads(ran.stdout)
            row |= {"overhead": plan["predicted_overhead"], "least": plan["least_overhead"],
                    "streaming": plan["streaming"], "plan_s": plan["plan_ms"] / 1e3}
        with self.lock, open(self.file, "a", encoding="utf-8") as file:
            print(json.dumps(row), file=file, flush=True)


def key(row):
    return tuple(row[field] for field in ("name", "machine", "budget", "planner", "limit"))


def read(file):
    if not os.path.exists(file):
        return []
    with open(file, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def percent(part):
    return "-" if part is None else f"{100 * part:.2f}"


def print_table(rows):
    """A line a cell: overheads in percent, and the least. Then how far auto is from it."""
    by_cell = {}
    for row in rows:
        if "overhead" in row:
            by_cell.setdefault((row["name"], row["machine"], row["budget"]), {})[
                row["planner"]] = row
    planners = [p for p in PLANNERS if any(p in found for found in by_cell.values())]
    print(f"| network | machine | budget | {' | '.join(planners)} | least |")
    print("|" + "---|" * (len(planners) + 4))
    logs, over, behind = [], [], []
    for (name, machine, budget), found in by_cell.items():
        overheads = {p: found[p]["overhead"] for p in planners if p in found}
        # Of the first planner's algorithms: others may have chosen others.
        least = found[next(iter(overheads))]["least"]
        print(f"| {name} | {machine} | {budget} % | "
              f"{' | '.join(percent(overheads.get(p)) for p in planners)} | {percent(least)} |")
        if "auto" not in overheads:
            continue
        if any(o < overheads["auto"] - 1e-4 for o in overheads.values()):
            behind.append(f"{name} {machine} {budget} %")
        if least is not None:
            ratio = (1 + overheads["auto"]) / (1 + least)
            logs.append(math.log(ratio))
            if ratio > 1.1:
                over.append(f"{name} {machine} {budget} % ({ratio:.3f})")
    if logs:
        print(f"\n(1 + auto) / (1 + least), geometric mean of {len(logs)} cells: "
              f"{math.exp(sum(logs) / len(logs)):.4f}; above 1.10: {', '.join(over) or 'none'}")
        print(f"auto behind another by over 0.01 points: {', '.join(behind) or 'nowhere'}")
    print("commits: " + ", ".join(sorted({row["commit"] for row in rows})))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="folder of a build with the target benchmarks")
    parser.add_argument("what", help="networks, models, or a file of results to print")
    parser.add_argument("--out", help="file of results")
    parser.add_argument("--planners", nargs="+", default=PLANNERS, metavar="P")
    parser.add_argument("--machines", nargs="+", default=MACHINES, metavar="M")
    parser.add_argument("--budgets", nargs="+", type=int, metavar="PERCENT")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of networks or models")
    parser.add_argument("--limit", default="10s", help="of each planner (default 10s)")
    parser.add_argument("--commit", help="of the program (default: that of the tree)")
    arguments = parser.parse_args()
    if arguments.what not in BUDGETS:
        if not os.path.exists(arguments.what):
            parser.error(f"{arguments.what} is neither networks, models nor a file of results")
        print_table(read(arguments.what))
        return
    if not arguments.out:
        parser.error("--out FILE is missing")
    table = Table(arguments)
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        todo = list(cells(arguments, folder))
        for n, _ in enumerate(pool.map(table.run, todo), 1):
            if sys.stderr.isatty():
                end = "\n" if n == len(todo) else ""
                print(f"\r{n} of {len(todo)}", end=end, file=sys.stderr, flush=True)
    print_table(read(arguments.out))


if __name__ == "__main__":
    main()
