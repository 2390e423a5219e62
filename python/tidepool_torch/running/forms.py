"""How a plan runs in the form that this torch has (primitives.py)."""

from ..base.primitives import SWAPS_ONLY
from ..form_b.swap_executor import SwapExecutor
from ..form_b.swap_schedule import SwapSchedule
from . import landing
from .executor import Executor
from .schedule import StepSchedule


def make_executor(program, plan, kept, region):
    if SWAPS_ONLY:
        return SwapExecutor(SwapSchedule(program, plan), region)
    return Executor(StepSchedule(program, plan), kept, region)


def land(executor, away):
    """Ends a plan early: what PyTorch still holds gets a place that does not depend on the plan.
    Returns (name, storage) of what may leave the device then. Where `away` is Home that place is the
    device, and no host bytes are needed."""
    if SWAPS_ONLY:
        return executor.land(away)
    return landing.land(executor, away)


def why_not(where, options, ranks):
    """What is asked of this form that it does not do, or None; `where` is the device."""
    if not SWAPS_ONLY:
        return None
    if where.has_streams:
        return (f"the model is on {where.device}, where this torch cannot serve it: a tensor that is "
                "away would end the process. Next: torch 2.12 or newer, or a C++ compiler (g++), with "
                "which torch 2.7 to 2.11 are served, and no TIDEPOOL_FORM")
    if not options.swap:
        return ("allow=('recompute',): this torch moves tensors by resizing their storages, which "
                "serves copies only. Next: allow=('swap',), or torch 2.12 or newer")
    if ranks.together:
        return ("several ranks: DistributedDataParallel and fully_shard() read gradients outside of "
                "PyTorch's dispatcher, which this torch cannot survive where one is away. Next: "
                "torch 2.12 or newer, or train in one process")
    return None
