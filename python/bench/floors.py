"""The smallest budgets that are named, and whether they are enough: asks for less, then trains inside
what the message names, and compares every bit with plain training.

    LD_PRELOAD=hook.so python floors.py

The batch is made inside the step, so that it may move. Bytes are the allocator hook's.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../tests", ".."):
    sys.path.insert(0, os.path.join(HERE, folder))

import torch  # noqa: E402

import models  # noqa: E402
import tidepool_torch as tidepool  # noqa: E402
from training import Style, differences, inside, plain  # noqa: E402

STYLE = Style(batch_inside=True)
STEPS = 5
LESS = "30MiB"


def named(build, min_bytes):
    try:
        inside(build, STEPS, LESS, STYLE, min_bytes=min_bytes)
    except tidepool.BudgetInfeasible as error:
        return error.smallest
    raise SystemExit(f"{LESS} are enough: this bench asks for too much")


def main():
    torch.set_num_threads(1)
    for name, build in models.LARGE.items():
        expected = plain(build, STEPS, STYLE)
        for min_bytes in ("64KiB", "4KiB"):
            smallest = named(build, min_bytes)
            ran = inside(build, STEPS, smallest, STYLE, hard=True, min_bytes=min_bytes)
            found = differences(expected, ran)
            print(f"{name}, min_bytes {min_bytes}: named {smallest / 2**20:.2f} MiB; peak there "
                  f"{ran.peak / 2**20:.2f}, {ran.planned_steps} planned steps, {ran.refused} refused, "
                  + ("all bits the same" if not found else f"differs: {found}"), flush=True)


main()
