"""What a planned step takes: its plan's time, Python's look at each call, processor time of copies."""

import dataclasses
import functools
import time

import torch

from ..base.primitives import SWAPS_ONLY
from .executor import Executor
from .growth import Growth
from .native import step_mode
from .schedule import LEFT_ALONE, NOT_PASSING, passing
from .step_mode import InterruptGate

_CALLS = 200
_TIMES = 3

# No machine is quieter than that, as a share.
_QUIET = 0.02


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Seconds of a step, and of all its threads' processors (None: not what bounds it, on a device with
    streams), and the same without a budget."""

    seconds: float
    processor: float
    unlimited: float

    def __str__(self):
        return (overhead(self.seconds, self.unlimited)
                + of_processor(self.processor, self.unlimited))


def overhead(seconds, unlimited):
    """In words. Where a step took less than its ops did, these were recorded on a busy machine."""
    share = share_above(seconds, unlimited)
    doubt = " (busy machine when its ops were recorded)" if share < -_QUIET else ""
    return f"{share * 100:+.1f} %{doubt}"


def of_processor(seconds, unlimited):
    """The rest of such words where these seconds are known."""
    return "" if seconds is None else f", of processor time {overhead(seconds, unlimited)}"


def share_above(seconds, unlimited):
    if seconds is None:
        return None
    return seconds / unlimited - 1 if unlimited > 0 else 0.0


def predict(program, plan, machine):
    """A plan that moves nothing has no call looked at. A device with streams works meanwhile."""
    info = plan.info
    unlimited = info.unlimited / 1e9
    if program.device.has_streams:
        return Prediction(info.time / 1e9, None, unlimited)
    if not info.swapped_tensors and not info.recomputed_ops:
        return Prediction(info.time / 1e9, unlimited, unlimited)
    looks = seconds_of_a_look() * len(program.recording.dispatched)
    again = sum(program.json["ops"][x.op]["algorithms"][0]["time_ns"]
                for x in plan.instructions if x.again) / 1e9
    copies = (info.copied_out / machine["to_host"]["bytes_per_second"]
              + info.copied_in / machine["to_device"]["bytes_per_second"])
    return Prediction(info.time / 1e9 + looks, unlimited + again + looks + copies, unlimited)


@functools.lru_cache(maxsize=None)
def seconds_of_a_look():
    """Of a call that a plan leaves alone, measured: of the thread's processor time."""
    x = torch.ones(1)
    neg = torch.ops.aten.neg.default
    plain = looked = float("inf")
    for _ in range(_TIMES):
        plain = min(plain, _seconds(x.neg))
        mode = step_mode(InterruptGate())
        mode.handle = lambda func, args, kwargs: func(*args, **kwargs)
        with mode:
            mode.walk = None if SWAPS_ONLY else _Walk(neg)
            looked = min(looked, _seconds(x.neg))
    return max(0.0, looked - plain)


def _seconds(call):
    start = time.thread_time()
    for _ in range(_CALLS):
        call()
    return (time.thread_time() - start) / _CALLS


class _Walk:
    """An executor that lets each call pass."""

    may_pass = Executor.may_pass

    def __init__(self, func):
        self.position = 0
        self.calls = [(func, LEFT_ALONE)] * _CALLS + [(None, None)]
        self.passing = [passing(func, LEFT_ALONE)] * _CALLS + [NOT_PASSING]
        self.growth = Growth([None] * _CALLS, 0)
        self.python_looks_at = ()
        self.ours, self.read_later = set(), set()
