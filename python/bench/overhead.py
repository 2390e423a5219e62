"""What a budget costs per op beside save_on_cpu and checkpoint, in one run, in turn.

    python overhead.py [--rounds N]

Main thread's CPU time, medians; a GPT of 6 layers whose kernels are small, so that what is measured
is Python. `plan` moves and computes again; `plain` has nothing. "All pass" is a plan that leaves
each call alone, by the executor in Python and by the native module, where that is built.
"""

import argparse
import contextlib
import os
import sys
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

import models  # noqa: E402
import tidepool_torch as tidepool  # noqa: E402
from tidepool_torch.running import native  # noqa: E402
from tidepool_torch.running.executor import Executor  # noqa: E402
from tidepool_torch.running.growth import Growth  # noqa: E402
from tidepool_torch.planning.planning import machine_of  # noqa: E402
from tidepool_torch.running.schedule import LEFT_ALONE, NOT_PASSING, passing  # noqa: E402
from tidepool_torch.running.step_mode import InterruptGate  # noqa: E402
from training import Style, body  # noqa: E402


def build():
    model = models.GPT(vocabulary=256, width=64, heads=4, layers=6, length=32)
    return models.Training(model, torch.optim.AdamW(model.parameters()),
                           models._tokens(2, 32, 256), models._next_tokens)


class Checkpointed(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return checkpoint(self.layer, x, use_reentrant=False)


class Nothing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def rivals():
    plain = models.make(build)
    yield "plain", plain, contextlib.nullcontext
    watched = models.make(build)
    yield "a mode that does nothing", watched, Nothing
    hooked = models.make(build)
    yield "save_on_cpu", hooked, torch.autograd.graph.save_on_cpu
    again = models.make(build)
    again.model.layers = torch.nn.ModuleList(Checkpointed(x) for x in again.model.layers)
    yield "checkpoint", again, contextlib.nullcontext
    for name, peak, with_native in KINDS:
        if not with_native:
            os.environ["TIDEPOOL_NATIVE"] = "0"
        elif native.find()[0] is None:
            continue
        planned = models.make(build)
        budget = tidepool.fit(planned.model, planned.optimizer, peak=peak, report=False,
                              min_bytes=4096, time_limit=3, machine=machine_of(2e9, 2e9))
        for n in range(3):
            batch = planned.batch(n)
            with budget.step():
                body(planned, [batch], Style())
        yield name, planned, budget.step, budget
        calls = budget._plans[0].program.recording.dispatched
        if peak == "75%":
            alone = models.make(build)
            body(alone, [alone.batch(0)], Style())  # the first step makes optimizer state
            yield (f"all pass, {'native' if with_native else 'Python'}", alone,
                   all_pass([func for func, *_ in calls]), budget)
        os.environ.pop("TIDEPOOL_NATIVE", None)


KINDS = (("budget that needs nothing", "1GiB", True), ("budget, 75 %, Python", "75%", False),
         ("budget, 75 %, native", "75%", True), ("budget, 50 %, Python", "50%", False),
         ("budget, 50 %, native", "50%", True))


class LeavesAlone:
    """In an executor's place: its plan leaves all calls alone."""

    def __init__(self, funcs):
        left_alone = [passing(func, LEFT_ALONE) for func in funcs]
        # Python has to look at calls over lists of tensors.
        actions = [None if row is NOT_PASSING else LEFT_ALONE for row in left_alone]
        self.calls = [*zip(funcs, actions), (None, None)]
        self.passing = [*map(passing, funcs, actions), NOT_PASSING]
        self.growth = Growth([None] * len(funcs), 0)
        self.highest = -1
        self.position = 0
        self.ours, self.read_later = set(), set()

    may_pass = Executor.may_pass


def all_pass(funcs):
    """A step whose mode lets each of these calls pass."""
    mode = native.step_mode(InterruptGate())
    walk = LeavesAlone(funcs)

    @contextlib.contextmanager
    def step():
        walk.position = 0
        mode.walk = walk
        with mode:
            yield
        assert walk.position == len(funcs), "a call did not pass"

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    runs = [list(r) for r in rivals()]
    calls = len(runs[-1][3]._plans[0].program.recording.dispatched)
    times = {r[0]: [] for r in runs}
    for n in range(rounds):
        for name, training, step, *_ in runs:
            batch = training.batch(n)
            start = time.thread_time_ns()
            with step():
                body(training, [batch], Style())
            times[name].append(time.thread_time_ns() - start)
    middle = {name: sorted(t)[len(t) // 2] for name, t in times.items()}
    print(f"{calls} calls a step")
    print(f"{'':28}{'ms a step':>10}{'us a call':>11}")
    for name, t in middle.items():
        print(f"{name:28}{t / 1e6:10.2f}{(t - middle['plain']) / 1e3 / calls:11.2f}")


main()
