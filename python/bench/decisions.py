"""What copies, computing again, and both cost by prediction, over slow links.

    python decisions.py [--time-limit SECONDS]

One recording of each model, its times scaled to a step of one second; links in bytes per second.
"""

import argparse
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../tests", ".."):
    sys.path.insert(0, os.path.join(HERE, folder))

import models  # noqa: E402
from tidepool_torch import BudgetInfeasible
from tidepool_torch.planning import planner, planning
from tidepool_torch.user import recorded  # noqa: E402
from training import Style, body  # noqa: E402

BUDGETS = {"resnet": (88.0, 58.7, 48.4, 41.0), "gpt": (153.4, 102.3, 84.4, 64.0, 52.0)}
WAYS = {"both": (True, True), "swap": (True, False), "recompute": (False, True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time-limit", type=float, default=4)
    limit = parser.parse_args().time_limit
    torch.set_num_threads(1)
    print(f"{'':8}{'link':>10}{'MiB':>8}" + "".join(f"{w:>12}" for w in WAYS))
    for name, budgets in BUDGETS.items():
        training = models.make(models.LARGE[name])
        number = iter(range(100))

        def step():
            body(training, [training.batch(next(number))], Style())

        program = recorded.record(training.model, [training.optimizer], step, name, 65536, True)
        total = sum(o["algorithms"][0]["time_ns"] for o in program.json["ops"])
        for op in program.json["ops"]:
            op["algorithms"][0]["time_ns"] = int(op["algorithms"][0]["time_ns"] * 1e9 / total)
        for link in (0.3e9, 0.1e9):
            for budget in budgets:
                row = f"{name:8}{link / 1e9:>7} GB/s{budget:>8}"
                for swap, again in WAYS.values():
                    row += _planned(program, budget, link, swap, again, limit)
                print(row, flush=True)


def _planned(program, budget, link, swap, again, limit):
    options = planner.Options(time_limit=limit, swap=swap, recompute=again)
    try:
        plan, _ = planning.make_plan(program, planning.machine_of(link, link),
                                     int(budget * 2**20), None, options)
    except BudgetInfeasible:
        return f"{'no plan':>12}"
    return f"{(plan.info.time / plan.info.unlimited - 1) * 100:>+10.1f} %"


main()
