"""fit(), and what needs no training."""

from __future__ import annotations

import torch

from ..base.errors import TidepoolError, bytes_of
from ..base.primitives import SWAPS_ONLY
from ..planning import planner as planning
from . import recorded
from .budget import Budget
from .config import Config, takes_config


@takes_config()
def fit(model, optimizer, *, sample=None, loss=None, step=None, **options):
    """A Budget that holds the steps of a training inside `peak` bytes.

    {options}
    optimizer    one or a list of several
    sample, loss a batch (x, y) and a function of the model's output and y: the first step runs by a
                 plan already, made from two steps under fake tensors, which hold no bytes, in a copy
                 of this process that is thrown away; planning takes up to time_limit here then. A
                 `peak` in percent is one of this step where such steps come, else of theirs
    step         instead of both: a function that does all of a step, without reading values

    ValueError: an argument that makes no sense; TidepoolError: a torch or a model that cannot be
    served.
    """
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"model: a torch.nn.Module, not a {type(model).__name__}")
    config = Config(**options)
    planning.check(config.planning)
    optimizers = _optimizers(optimizer)
    _check_pair(model, optimizers)
    if sample is not None or loss is not None or step is not None:
        step = _step_of(model, optimizers, sample, loss, step)
        _ahead()
    budget = Budget(model, optimizers, config)
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
    if not several:
        raise ValueError("optimizer: none was given, and what it keeps would be in no plan. Next: the "
                         "torch.optim.Optimizer that trains the model, or a list of several")
    if any(hasattr(o, "optimizer") and hasattr(o, "last_epoch") for o in several):
        raise ValueError("optimizer: a scheduler. Next: the optimizer that it sets the rate of")
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


@takes_config("peak", "host", "planner", "time_limit", "evaluations", "seed", "allow", "min_bytes",
              "machine")
def plan(model, optimizer, step=None, *, sample=None, loss=None, run=False, **options):
    """What a budget would cost, without training inside it: an Outlook, which prints as a line.

    The step is `sample`, a batch (x, y), with `loss`, a function of the model's output and y; or
    step(), which does all of one. It is called with fake tensors, in a copy of this process that is
    thrown away, so nothing here changes but what it writes to files, sockets and shared memory;
    bytes are exact, times and workspaces estimates. With `run` step() is called three times here
    and measured, as record() does, which trains. Planning takes up to time_limit seconds and tens
    of MiB.

    CannotPlanAhead, a TidepoolError: the step reads values, as `.item()` does, ends in an error, or
    no copy of this process can be made."""
    config = Config(**options)
    optimizers = _optimizers(optimizer)
    step = _step_of(model, optimizers, sample, loss, step)
    name = type(model).__name__
    if run:
        program = recorded.record(model, optimizers, step, name, config.min_bytes,
                                  config.planning.recompute)
    else:
        ahead = _ahead()
        program = ahead.program_of(ahead.later_step(model, optimizers, step), name,
                                   config.min_bytes, config.planning.recompute, home=True)
    return recorded.outlook(program, config)
