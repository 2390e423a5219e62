"""Trains a model plainly and inside a budget, and says what differs."""

import contextlib
import dataclasses
import gc

import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.base.memory import counts, hook_is_loaded
from tidepool_torch.base.primitives import has_bytes


def bits(tensor):
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    return bytes(flat.numpy().tobytes())


def state_of(training):
    """Every byte that a step can change: parameters, buffers, gradients, optimizer, random state."""
    model, optimizer = training.model, training.optimizer
    state = {f"parameter {n}": bits(p) for n, p in model.named_parameters()}
    state.update({f"buffer {n}": bits(b) for n, b in model.named_buffers()})
    state.update({f"gradient {n}": bits(p.grad) for n, p in model.named_parameters()
                  if p.grad is not None})
    for i, of_parameter in enumerate(optimizer.state.values()):
        state.update({f"optimizer {i} {k}": bits(v) for k, v in of_parameter.items()
                      if isinstance(v, torch.Tensor)})
    state["random state"] = bits(torch.get_rng_state())
    return state


@dataclasses.dataclass
class Style:
    """How a user writes a step."""

    micro_batches: int = 1
    clip: bool = False
    zero_first: bool = False
    to_none: bool = True
    batch_inside: bool = False


def body(training, batches, style):
    total = 0.0
    if style.zero_first:
        training.optimizer.zero_grad(set_to_none=style.to_none)
    for x, y in batches:
        loss = training.loss(training.model, x, y) / len(batches)
        loss.backward()
        total += float(loss.detach())
    if style.clip:
        torch.nn.utils.clip_grad_norm_(training.model.parameters(), 0.5)
    training.optimizer.step()
    if not style.zero_first:
        training.optimizer.zero_grad(set_to_none=style.to_none)
    return total


def one_step(training, number, style, step=contextlib.nullcontext):
    def batches():
        return [training.batch(number * 10 + i) for i in range(style.micro_batches)]

    made = None if style.batch_inside else batches()
    with step():
        return body(training, made or batches(), style)


@dataclasses.dataclass
class Ran:
    losses: list
    state: dict
    peak: int = 0  # measured, of planned steps; 0 without the hook
    budget: int = 0
    moved_out: int = 0
    moved_in: int = 0
    reruns: int = 0
    planned_steps: int = 0
    divergences: int = 0
    refused: int = 0


def plain(build, steps, style=Style(), random_seed=5):
    training = models.make(build)
    torch.manual_seed(random_seed)
    losses = [one_step(training, n, style) for n in range(steps)]
    return Ran(losses, state_of(training))


def on_device(budget):
    """Bytes of the model and the optimizer that are there between steps."""
    found = 0
    for _, _, storage in budget._trained.persistent():
        if has_bytes(storage):
            found += storage.nbytes()
    return found


def inside(build, steps, peak, style=Style(), random_seed=5, hard=False, **options):
    """With `hard` the allocator refuses what is above the budget and 1 MiB, from the first planned
    step on."""
    gc.collect()
    training = models.make(build)
    torch.manual_seed(random_seed)
    budget = tidepool.fit(training.model, training.optimizer, peak=peak, report=False, **options)
    ran = Ran([], {})
    measures = hook_is_loaded()
    refused = counts.refused() if measures else 0
    for n in range(steps):
        planned_before = budget.plan is not None
        if measures and planned_before:
            gc.collect()
            counts.restart()
            base = counts.live() - on_device(budget)
            if hard:
                counts.limit(base + budget.peak + (1 << 20))
        ran.losses.append(one_step(training, n, style, budget.step))
        if measures and planned_before:
            ran.peak = max(ran.peak, counts.peak() - base)
    if measures:
        counts.limit(0)
        ran.refused = counts.refused() - refused
    ran.budget = budget.peak
    for planned in budget._plans:
        ran.moved_out += planned.executor.moved_out
        ran.moved_in += planned.executor.moved_in
        ran.reruns += planned.executor.reruns
        ran.planned_steps += planned.steps
    ran.divergences = budget.divergences
    budget.close()
    ran.state = state_of(training)
    return ran


def differences(one, other):
    """Names of what differs between two runs."""
    found = [f"loss {i}" for i, (a, b) in enumerate(zip(one.losses, other.losses)) if a != b]
    if len(one.losses) != len(other.losses):
        found.append("number of losses")
    names = {**one.state, **other.state}
    return found + [n for n in names if one.state.get(n) != other.state.get(n)]
