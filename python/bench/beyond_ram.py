"""Training that does not fit into a control group's memory: killed without a budget, finished with
one and a file behind it, beside kernel swap, checkpointing and a smaller batch with accumulation.

    python beyond_ram.py [--steps N] [--rounds N] [--folder DIR]

As root. Each run is a process of its own that enters its group once the model is made, so that what
the interpreter and the libraries take is counted in none of them. All ask for huge pages, as scripts
under `tidepool-torch run` do. All ways run in turn, once in each round; medians of the steps behind
the third (with a budget they are planned), of all rounds.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../../bench", "../tests", ".."):
    sys.path.insert(0, os.path.join(HERE, folder))

# name, batch, limit of the group, budget (MiB)
CASES = (("resnet", 384, 500, 440), ("gpt", 32, 411, 360))
WAYS = ("unlimited", "plain", "budget", "swap", "checkpoint", "accumulation")
_NOT_COUNTED = 3  # steps without a plan, and the first with one


def child(name, batch, budget, way, steps, folder, group):
    import torch
    import models
    import tidepool_torch as tidepool
    from training import Style, body
    from torch.utils.checkpoint import checkpoint

    torch.set_num_threads(1)
    training = models.make(lambda: models.LARGE[name](batch))
    torch.manual_seed(5)
    if way == "checkpoint":
        layers = training.model.body if name == "resnet" else training.model.layers
        for layer in layers:
            layer.forward = _checkpointed(layer.forward, checkpoint)
    step, budget_of = contextlib.nullcontext, None
    if way == "budget":
        budget_of = tidepool.fit(training.model, training.optimizer, peak=f"{budget}MiB",
                                 host_dir=folder, report=False, time_limit=10)
        step = budget_of.step
    if group:
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
    losses, seconds = [], []
    for n in range(steps):
        parts = [training.batch(n)]
        if way == "accumulation":
            x, y = parts[0]
            parts = list(zip(x.split(batch // 4), y.split(batch // 4)))
        start = time.perf_counter()
        with step():
            losses.append(body(training, parts, Style()))
        seconds.append(time.perf_counter() - start)
    report = budget_of.report().as_dict() if budget_of else {}
    print(json.dumps({"losses": losses, "seconds": seconds, "report": report}))


def _checkpointed(forward, checkpoint):
    return lambda x: checkpoint(forward, x, use_reentrant=False)


def run(name, batch, limit, budget, way, steps, folder):
    """(what the process ended with, the group's peak or None)."""
    from memory_group import MemoryGroup
    from swap_area import SwapFile

    command = [sys.executable, __file__, "--child",
               json.dumps([name, batch, budget, way, steps, folder])]
    environment = {**os.environ, "THP_MEM_ALLOC_ENABLE": "1"}

    def ended(group):
        return subprocess.run([*command, group], env=environment, capture_output=True, text=True,
                              check=False)

    if way == "unlimited":
        return ended(""), None
    with contextlib.ExitStack() as stack:
        if way == "swap":
            # Three pages of read-ahead as powers of two: what kernels have by themselves.
            stack.enter_context(SwapFile(folder, 2 << 30, 3))
        group = stack.enter_context(MemoryGroup(limit << 20, swap=way == "swap"))
        done = ended(group.folder)
        return done, group.readings()["peak"]


class Way:
    """What the rounds of one way told."""

    def __init__(self):
        self.seconds, self.peaks, self.losses, self.ended, self.report = [], [], None, None, {}

    def add(self, done, peak):
        if done.returncode != 0:
            killed = done.returncode == -signal.SIGKILL
            self.ended = "killed by the kernel" if killed else (
                "failed: " + done.stderr.strip().splitlines()[-1])
            return
        told = json.loads(done.stdout)
        self.seconds += told["seconds"][_NOT_COUNTED:]
        self.losses, self.report = told["losses"], told["report"]
        self.peaks.append(peak or 0)

    def line(self, reference):
        if self.ended:
            return self.ended
        middle = statistics.median(self.seconds)
        same = "the same losses" if self.losses == reference.losses else "other losses"
        moved, peak = self.report.get("moved_out", 0) >> 20, max(self.peaks) >> 20
        return (f"{middle:6.2f} s a step ({min(self.seconds):.2f} to {max(self.seconds):.2f}), "
                f"{middle / statistics.median(reference.seconds):5.2f} x, {same}"
                + (f", {moved} MiB written" if moved else "")
                + (f", group's peak {peak} MiB" if peak else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--cases", default="resnet,gpt")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, batch, budget, way, steps, folder = json.loads(arguments.child[0])
        child(name, batch, budget, way, steps, folder, arguments.child[1])
        return
    for name, batch, limit, budget in CASES:
        if name not in arguments.cases.split(","):
            continue
        print(f"{name}, batch {batch}, group of {limit} MiB, budget {budget} MiB", flush=True)
        ways = {way: Way() for way in arguments.ways.split(",")}
        for _ in range(arguments.rounds):
            for way, told in ways.items():
                if not told.ended:
                    told.add(*run(name, batch, limit, budget, way, arguments.steps,
                                  arguments.folder))
        for way, told in ways.items():
            print(f"  {way:13} {told.line(ways['unlimited'])}", flush=True)


main()
