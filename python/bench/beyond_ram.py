"""Training that does not fit into a control group's memory: killed without a budget, finished with
one and a file behind it, beside checkpointing and a smaller batch with accumulation.

    python beyond_ram.py [--steps N] [--folder DIR]

As root. Each run is a process of its own that enters its group once the model is made, so that what
the interpreter and the libraries take is counted in none of them. Medians of the steps that are
planned; the same steps in all runs.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../../bench", "../tests", ".."):
    sys.path.insert(0, os.path.join(HERE, folder))

# name, batch, limit of the group, budget (MiB)
CASES = (("resnet", 384, 500, 440), ("gpt", 32, 411, 360))
WAYS = ("unlimited", "plain", "budget", "checkpoint", "accumulation")


def child(name, batch, budget, way, steps, folder, group):
    import contextlib

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
                                 host_dir=folder, report=False, time_limit=5)
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
    from memory_group import MemoryGroup

    command = [sys.executable, __file__, "--child",
               json.dumps([name, batch, budget, way, steps, folder])]
    if way == "unlimited":
        done = subprocess.run([*command, ""], capture_output=True, text=True, check=False)
        return done, None
    with MemoryGroup(limit << 20) as group:
        done = subprocess.run([*command, group.folder], capture_output=True, text=True, check=False)
        return done, group.readings()["peak"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, batch, budget, way, steps, folder = json.loads(arguments.child[0])
        child(name, batch, budget, way, steps, folder, arguments.child[1])
        return
    for name, batch, limit, budget in CASES:
        print(f"{name}, batch {batch}, group of {limit} MiB, budget {budget} MiB", flush=True)
        first = None
        for way in WAYS:
            done, peak = run(name, batch, limit, budget, way, arguments.steps, arguments.folder)
            if done.returncode != 0:
                killed = done.returncode == -signal.SIGKILL
                print(f"  {way:13} " + ("killed by the kernel" if killed else
                                        f"failed: {done.stderr.strip().splitlines()[-1]}"),
                      flush=True)
                continue
            told = json.loads(done.stdout)
            last = sorted(told["seconds"][2:])
            middle = last[len(last) // 2]
            first = first or (middle, told["losses"])
            same = "the same losses" if told["losses"] == first[1] else "other losses"
            moved = told["report"].get("moved_out", 0) >> 20
            print(f"  {way:13} {middle:6.2f} s a step, {middle / first[0]:5.2f} x, {same}"
                  + (f", {moved} MiB written" if moved else "")
                  + (f", group's peak {peak >> 20} MiB" if peak else ""), flush=True)


main()
