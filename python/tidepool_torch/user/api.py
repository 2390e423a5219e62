"""fit(), and what needs no training."""

from __future__ import annotations

import dataclasses
import os

import torch

from ..base.errors import TidepoolError, bytes_of
from ..base.primitives import SWAPS_ONLY
from ..planning import planner as planning
from . import recorded
from .budget import Budget
from .peaks import peak_of


@dataclasses.dataclass(frozen=True)
class _FitOptions:
    planning: planning.Options
    host: int | None
    host_dir: str | None
    min_bytes: int
    keep: frozenset
    home: bool
    warm_up: int | None
    machine: dict | None
    report: bool


def fit(model, optimizer, *, peak, host=None, host_dir=None, planner="auto", time_limit=10.0,
        evaluations=0, seed=1, allow=("swap", "recompute"), min_bytes=65536, keep=(), home=True,
        warm_up=None, machine=None, report=True, sample=None, loss=None, step=None):
    """A Budget that holds the steps of a training inside `peak` bytes.

    peak         bytes, "10GiB", or "60%" of what a step takes without a budget; everything of the
                 training counts: parameters, gradients, optimizer state, batch, workspaces. "auto":
                 what the group of processes, the machine and ulimit -v leave; "least": the smallest
                 budget that a plan was found for. A share and "least" are known when a step was
                 recorded; those before it run without a budget, unless a step is given
    optimizer    one or a list of several
    host         bytes that may have left the device, of all ranks of this machine; None: no limit
    host_dir     a folder: what leaves goes to a file there, without a name
    planner      one of Tidepool's planners
    time_limit   seconds that planning may take
    evaluations  above 0: trials of the planner instead of seconds; the plan is the same anywhere, and
                 steps wait for it, where plans for further shapes are made beside the steps else
    allow        "swap", "recompute" or both
    min_bytes    smaller tensors stay where they are; bytes, or "4KiB"
    keep         names of what never leaves the device: parameters, buffers, and optimizer state as in
                 "head.weight.exp_avg"
    home         parameters and buffers are on the device between steps
    warm_up      steps of a shape before one is recorded; None: 1, or 3 where ranks train together
    machine      a machine of Tidepool's as its file has it (a dict), to plan for links of other
                 speeds than those that are measured here
    sample, loss a batch (x, y) and a function of the model's output and y: the first step runs by a
                 plan already, made from two steps under fake tensors, which hold no bytes, in a copy
                 of this process that is thrown away; planning takes up to time_limit here then. A
                 `peak` in percent is one of this step where such steps come, else of theirs
    step         instead of both: a function that does all of a step, without reading values

    ValueError: an argument that makes no sense; TidepoolError: a torch or a model that cannot be
    served. Messages go to stderr unless `report` is False.
    """
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"model: a torch.nn.Module, not a {type(model).__name__}")
    options = _FitOptions(
        planning=_planner_options(planner, time_limit, evaluations, seed, allow),
        host=None if host is None else bytes_of(host, "host"), host_dir=host_dir,
        min_bytes=bytes_of(min_bytes, "min_bytes"), keep=frozenset(keep), home=home,
        warm_up=warm_up, machine=machine, report=report)
    planning.check(options.planning)
    optimizers = _optimizers(optimizer)
    _check_pair(model, optimizers)
    if isinstance(keep, str):
        raise ValueError(f"keep={keep!r}: a list of names, as in keep=[{keep!r}]")
    if not isinstance(host_dir, (str, os.PathLike, type(None))):
        raise ValueError(f"host_dir={host_dir!r}: the path of a folder, or None")
    if sample is not None or loss is not None or step is not None:
        step = _step_of(model, optimizers, sample, loss, step)
        _ahead()
    budget = Budget(model, optimizers, peak, options)
    budget.plan_ahead(step)
    return budget


def _ahead():
    """The module, which needs fake tensors as newer versions of torch have them."""
    if SWAPS_ONLY:
        raise TidepoolError("planning ahead of time, from a step that is not run, needs torch 2.12 "
                            "or newer. Next: fit() without sample=, loss= and step=; plan(..., "
                            "run=True)")
    from ..recording import ahead
    return ahead


def _step_of(model, optimizers, sample, loss, step):
    """The function that does all of a step: the user's own, or the usual one for a batch."""
    if step is not None:
        if sample is not None or loss is not None:
            raise ValueError("step= does all of a step: sample= and loss= do not go with it")
        if not callable(step):
            raise ValueError(f"step: a function without arguments, not a {type(step).__name__}")
        return step
    if not (isinstance(sample, (tuple, list)) and len(sample) == 2 and callable(loss)):
        raise ValueError("sample: a batch (x, y), with loss=, a function of the model's output and "
                         "y; or step=, a function that does all of a step")
    x, y = sample

    def usual():
        loss(model(x), y).backward()
        for optimizer in optimizers:
            optimizer.step()
        for optimizer in optimizers:
            optimizer.zero_grad()

    return usual


def _optimizers(optimizer):
    several = optimizer if isinstance(optimizer, (list, tuple)) else [optimizer]
    found = [_unwrapped(o) for o in several]
    for one in found:
        if not hasattr(one, "param_groups") or not hasattr(one, "state"):
            raise ValueError(f"optimizer: a torch.optim.Optimizer, not a {type(one).__name__}")
    return found


def _check_pair(model, optimizers):
    mine = {id(p) for p in model.parameters()}
    for optimizer in optimizers:
        theirs = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if theirs and mine.isdisjoint(theirs):
            raise ValueError(f"optimizer: {type(optimizer).__name__} has no parameter of the model. "
                             "Next: the one that was made of model.parameters()")


def _unwrapped(optimizer):
    """The optimizer itself, out of what Accelerate and Lightning put around it."""
    while isinstance(getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
        optimizer = optimizer.optimizer
    return optimizer


def _planner_options(planner, time_limit, evaluations, seed, allow):
    if isinstance(allow, str) or not allow or set(allow) - {"swap", "recompute"}:
        raise ValueError(f"allow={allow!r}: a tuple of 'swap', 'recompute' or both")
    if not isinstance(time_limit, (int, float)) or not time_limit > 0:
        raise ValueError(f"time_limit={time_limit!r}: seconds above 0")
    for name, value in (("evaluations", evaluations), ("seed", seed)):
        if not isinstance(value, int) or value < 0:
            raise ValueError(f"{name}={value!r}: a whole number, 0 or above")
    return planning.Options(planner=planner, seed=seed, time_limit=time_limit,
                            evaluations=evaluations, swap="swap" in allow,
                            recompute="recompute" in allow)


def record(model, optimizer, step, *, path=None, min_bytes=65536, recompute=True):
    """The program of one step of an unchanged script, which `tidepool info`, `plan`, `compare` and
    `bound` take; as a dict, and written to `path` where one is given.

    step() does all of a step. It is called three times: to make the optimizer's state, to be timed,
    to be recorded. That trains; no budget holds meanwhile."""
    program = recorded.record(model, _optimizers(optimizer), step, type(model).__name__,
                              bytes_of(min_bytes, "min_bytes"), recompute)
    if path is not None:
        recorded.write_program(program, path)
    return program.json


def plan(model, optimizer, step=None, *, peak, sample=None, loss=None, run=False, host=None,
         planner="auto", time_limit=10.0, evaluations=0, seed=1, allow=("swap", "recompute"),
         min_bytes=65536, machine=None):
    """What a budget would cost, without training inside it: an Outlook, which prints as a line.

    The step is `sample`, a batch (x, y), with `loss`, a function of the model's output and y; or
    step(), which does all of one. It is called with fake tensors, in a copy of this process that is
    thrown away, so nothing here changes but what it writes to files, sockets and shared memory;
    bytes are exact, times and workspaces estimates. With `run` step() is called three times here
    and measured, as record() does, which trains. Planning takes up to time_limit seconds and tens
    of MiB.

    CannotPlanAhead, a TidepoolError: the step reads values, as `.item()` does, ends in an error, or
    no copy of this process can be made."""
    peak = peak_of(peak)
    options = _planner_options(planner, time_limit, evaluations, seed, allow)
    optimizers = _optimizers(optimizer)
    step = _step_of(model, optimizers, sample, loss, step)
    name, min_bytes = type(model).__name__, bytes_of(min_bytes, "min_bytes")
    if run:
        program = recorded.record(model, optimizers, step, name, min_bytes, options.recompute)
    else:
        ahead = _ahead()
        program = ahead.program_of(ahead.later_step(model, optimizers, step), name, min_bytes,
                                   options.recompute, home=True)
    host = None if host is None else bytes_of(host, "host")
    return recorded.outlook(program, peak, host, machine, options)
