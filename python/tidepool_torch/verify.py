"""The user's defence: the same steps with and without a budget, compared bit by bit."""

import dataclasses

import torch

from .primitives import storage_of


@dataclasses.dataclass
class Verdict:
    """`differs` has names of tensors, and "step N" where step N returned something else."""

    steps: int
    planned_steps: int
    differs: list

    def __bool__(self):
        return not self.differs

    def __str__(self):
        if self.differs:
            return (f"{len(self.differs)} differ after {self.steps} steps: "
                    + ", ".join(self.differs[:8]))
        return f"the same bits after {self.steps} steps, {self.planned_steps} of them planned"


class _Snapshot:
    """Copies of everything that a step changes, gradients and the random state too."""

    def __init__(self, trained):
        self._copies = [(name, storage.clone()) for name, _, storage in trained.persistent()]
        self._gradients = [(p, None if p.grad is None else p.grad.detach().clone())
                           for p in trained.model.parameters()]
        self._states = [(o, {owner: dict(values) for owner, values in o.state.items()})
                        for o in trained.optimizers]
        self._random_state = torch.get_rng_state()

    def restore(self, trained):
        for optimizer, before in self._states:
            _forget_new(optimizer.state, before)
        saved = dict(self._copies)
        for name, _, storage in trained.persistent():
            if name in saved:
                storage.copy_(saved[name])
        for parameter, gradient in self._gradients:
            parameter.grad = None if gradient is None else gradient.clone()
        torch.set_rng_state(self._random_state)

    def differences(self, other):
        """Names of what is not the same, bit by bit."""
        mine, theirs = dict(self._copies), dict(other._copies)
        found = [n for n in {**mine, **theirs}
                 if n not in mine or n not in theirs or not _same(mine[n], theirs[n])]
        for (_, a), (_, b) in zip(self._gradients, other._gradients):
            if (a is None) != (b is None) or (
                    a is not None and not _same(storage_of(a.contiguous()),
                                                storage_of(b.contiguous()))):
                found.append("a gradient")
        if not torch.equal(self._random_state, other._random_state):
            found.append("the random state")
        return found


def _forget_new(state, before):
    """Optimizer state that there was not: a first step makes it, and once more."""
    for owner in list(state):
        if owner not in before:
            del state[owner]
            continue
        values = state[owner]
        for name in list(values):
            if name not in before[owner]:
                del values[name]
            elif not isinstance(values[name], torch.Tensor):
                values[name] = before[owner][name]


def _same(one, other):
    if one.nbytes() != other.nbytes():
        return False
    flat = [torch.empty(0, dtype=torch.uint8).set_(s, 0, (s.nbytes(),), (1,)) for s in (one, other)]
    return torch.equal(*flat)


def verify(budget, trained, step, steps):
    with budget.resident():
        before = _Snapshot(trained)
        returned = [_value(step()) for _ in range(steps)]
        plainly = _Snapshot(trained)
        before.restore(trained)
    planned = budget.report().planned_steps
    inside = []
    for _ in range(steps):
        with budget.step():
            inside.append(_value(step()))
    planned = budget.report().planned_steps - planned
    with budget.resident():
        differs = _Snapshot(trained).differences(plainly)
    differs += [f"step {i + 1}" for i, (a, b) in enumerate(zip(returned, inside)) if a != b]
    return Verdict(steps, planned, differs)


def _value(returned):
    """What can be compared of what a step returns."""
    if isinstance(returned, torch.Tensor):
        return returned.detach().contiguous().reshape(-1).view(torch.uint8).tolist()
    return returned if isinstance(returned, (int, float, str, tuple)) else None
