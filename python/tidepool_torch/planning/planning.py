"""From a recorded step to a plan within all of the budget, on the machine as it is."""

import contextlib
import dataclasses
import time

import torch

from ..base.advice import needs_of, next_of
from ..base.compat import OUT_OF_MEMORY
from ..base.errors import BudgetInfeasible, HostTierFull, in_words, needed_in_words
from ..base.primitives import SWAPS_ONLY
from ..recording.kept import Kept
from . import planner

ALIGNMENT = 4096  # what a block of its own mapping takes
_COPY_LATENCY = 30_000  # ns, of a thread that is woken
_PROBE = 32 << 20
_TRIES = 4

# Copies both ways that share no link take half of what they take in turn.
_TOGETHER = 0.75
_STEPS_UP = 8
_LEAST_PROBE = 1 << 20
_LEAST_PROBE_OF_ALL = 16 << 10


def make_plan(program, machine, peak, host, options, plan_by=None):
    """A plan within `peak` bytes, all counted: what reruns keep beside the plan follows from it, so
    it is subtracted and planned again where it does not fit. (plan, Kept)."""
    if peak >= program.recording.peak():
        return _plan_of_nothing(program, machine, options, plan_by)
    beside = 0
    until = time.monotonic() + options.time_limit
    for _ in range(_TRIES):
        limit = peak - program.small - beside
        try:
            if limit <= 0:
                raise BudgetInfeasible("", 0)
            plan = (plan_by or planner.plan)(program.json, machine, limit, host, options)
        except BudgetInfeasible as error:
            raise infeasible(program, machine, peak, beside, error, options, host) from None
        kept = Kept(program, plan)
        if plan.info.device_bytes + program.small + kept.bytes <= peak:
            return plan, kept
        beside = kept.bytes
        # All tries together take hardly more than one may.
        left = max(until - time.monotonic(), options.time_limit / 10)
        options = dataclasses.replace(options, time_limit=left)
    if options.recompute and options.swap:
        return make_plan(program, machine, peak, host,
                         dataclasses.replace(options, recompute=False), plan_by)
    raise infeasible(program, machine, peak, beside, BudgetInfeasible(""), options, host)


def _plan_of_nothing(program, machine, options, plan_by):
    """A plan that leaves all where PyTorch has it, for a budget that the step as it is meets: it has
    no addresses to find, so room between blocks is not counted."""
    everything = (sum(t["bytes"] for t in program.json["tensors"])
                  + max(a["workspace"] for op in program.json["ops"] for a in op["algorithms"]))
    room = 2 * (everything + ALIGNMENT * (len(program.tensors) + 1))
    plan = (plan_by or planner.plan)(program.json, machine, room, None,
                                     dataclasses.replace(options, planner="none"))
    return plan, Kept(program, plan)


def make_least_plan(program, machine, host, options, plan_by=None):
    """(bytes, what make_plan() returns) of the smallest budget that one was found for, looked for
    upward from the floor."""
    peak = least_of(program, machine)
    for _ in range(_STEPS_UP):
        try:
            return peak, make_plan(program, machine, peak, host, options, plan_by)
        except BudgetInfeasible as error:
            peak = max(error.smallest, peak + peak // 32)
    return peak, make_plan(program, machine, peak, host, options, plan_by)


def least_of(program, machine):
    """Bytes below which no plan is."""
    floor, _ = planner.smallest_budget(program.json, machine)
    return floor + program.small


def infeasible(program, machine, peak, beside, error, options, host=None):
    floor, op = planner.smallest_budget(program.json, machine)
    smallest = (max(error.smallest, floor) + program.small + beside
                + program.recording.inexact)
    if (floor + program.small + beside <= peak and not SWAPS_ONLY
            and not (options.swap and options.recompute)):
        only = "copies" if options.swap else "computes again"
        return BudgetInfeasible(
            f"no plan that only {only} was found inside {in_words(peak)}; any plan needs "
            f"{needed_in_words(floor + program.small)}. Next: allow=('swap', 'recompute'), or a larger "
            "budget", error.smallest and smallest)
    if host is not None and floor + program.small + beside <= peak:
        return BudgetInfeasible(
            f"no plan was found inside {in_words(peak)} with host={in_words(host)} for what leaves "
            f"the device; any plan needs {needed_in_words(floor + program.small + beside)} and more "
            "of the host the closer it comes to that. Next: a larger host=, host_dir= for a file, "
            "or a larger budget", error.smallest and smallest)
    who, what = needs_of(program, op, floor)
    held = program.recording.held
    return BudgetInfeasible(
        f"cannot train inside {in_words(peak)}: {who} needs {in_words(floor)} at once: {what}; small "
        f"tensors {in_words(program.small - held)} beside it"
        f"{f', {in_words(held)} that the script holds' if held else ''}; smallest budget "
        f"{needed_in_words(smallest)}. Next: {next_of(program, op)}", smallest)


def nothing_may_move(takes, peak, min_bytes):
    return BudgetInfeasible(
        f"cannot train inside {in_words(peak)}: a step takes {in_words(takes)}, and none of its tensors "
        f"may move: those below {in_words(min_bytes)} stay, and those that are kept; smallest budget "
        f"{needed_in_words(takes)}. Next: a larger budget, or a smaller min_bytes=", takes)


def measured_machine(where, tier, room=2 * _PROBE):
    """The machine of a device as Tidepool's machine file has it, with the host tier's speeds measured by a
    copy that takes no more than half of `room`, if it can."""
    size = min(_PROBE, max(room // 2, _LEAST_PROBE))
    while True:
        try:
            return _measured_by(where, tier, size)
        except OUT_OF_MEMORY:
            size //= 2
            if size < _LEAST_PROBE_OF_ALL:
                raise


def _measured_by(where, tier, size):
    buffer = where.fresh(size)
    torch.empty(0, dtype=torch.uint8, device=where.device).set_(buffer, 0, (size,), (1,)).fill_(1)
    region = tier.region(size)
    out_speed = max(_speed(where, where.out, buffer, region) for _ in range(3))
    del buffer
    # Into bytes that are new each time, as those are that a step's copies come back to.
    in_speed = max(_speed(where, where.back, None, region, size) for _ in range(3))
    region.release()
    duplex = not where.has_streams or _go_beside(where, tier, size, size / out_speed + size / in_speed)
    return machine_of(out_speed, in_speed, where.alignment, where.device.type, duplex)


def _go_beside(where, tier, size, in_turn):
    """Whether copies both ways take much less time together than in turn."""
    try:
        with contextlib.closing(_Both(where, tier, size)) as both:
            return min(both.seconds() for _ in range(3)) < _TOGETHER * in_turn
    except (HostTierFull, OUT_OF_MEMORY):
        return True  # most do


class _Both:
    """Copies both ways at once, each on a stream and of bytes of its own."""

    def __init__(self, where, tier, size):
        self._where = where
        self._moves = [(where.stream(), move, where.fresh(size), offset)
                       for move, offset in ((where.out, 0), (where.back, size))]
        self._region = tier.region(2 * size)

    def seconds(self):
        here = self._where.current()
        timer = self._where.time_of_step()
        for stream, move, buffer, offset in self._moves:
            stream.wait_stream(here)
            with self._where.on(stream):
                move(buffer, self._region, offset)
        for stream, *_ in self._moves:
            here.wait_stream(stream)
        if not self._region.is_memory:
            self._region.settle()
        return float(timer.stop())

    def close(self):
        self._region.release()


def _speed(where, move, buffer, region, size=0):
    timer = where.time_of_step()
    buffer = where.fresh(size) if buffer is None else buffer
    move(buffer, region)
    if not region.is_memory:
        region.settle()  # the disk has it then
    return buffer.nbytes() / max(float(timer.stop()), 1e-9)


def machine_of(out_speed, in_speed, alignment=ALIGNMENT, kind="cpu", duplex=True):
    return {
        "name": f"torch-{kind}", "description": "PyTorch", "device_memory": 0,
        "alignment": alignment, "duplex": duplex,
        "to_host": {"bytes_per_second": float(out_speed), "latency_ns": _COPY_LATENCY},
        "to_device": {"bytes_per_second": float(in_speed), "latency_ns": _COPY_LATENCY},
        "compute": {"peak_flops": 0.0, "bandwidth": 0.0, "launch_ns": 0, "max_efficiency": 1.0,
                    "half_flops": 0.0}}
