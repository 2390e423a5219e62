"""The user's defence: the same steps with and without a budget, compared bit by bit."""

import dataclasses
import random
import struct
import sys

import torch

from ..base import device, instances
from ..base.errors import TidepoolError
from ..base.primitives import storage_of
from ..base.wrappers import local


@dataclasses.dataclass
class Verdict:
    """`differs` has names of tensors, and "step N" where step N returned something else. `unrepeated` has
    the same of two plain runs, on a device where those were compared too: where it is not empty, bits say
    nothing, and the largest relative differences of parameters are compared, between the plain runs and
    between plain and inside the budget."""

    steps: int
    planned_steps: int
    differs: list
    unrepeated: list = dataclasses.field(default_factory=list)
    plain_difference: float = 0.0
    difference: float = 0.0

    def __bool__(self):
        if self.unrepeated:
            return self.difference <= _SPREAD * self.plain_difference
        return not self.differs

    def __str__(self):
        if self.unrepeated:
            verdict = "no more than that" if self else "more than that"
            return (f"plain training does not repeat its own bits here (first difference: "
                    f"{self.unrepeated[0]}; parameters by {self.plain_difference:.1e} at most after "
                    f"{self.steps} steps); inside the budget they differ by {self.difference:.1e}, "
                    f"{verdict}. Next: torch.use_deterministic_algorithms(True), where bits can be "
                    "compared")
        if self.differs:
            return (f"{len(self.differs)} differ after {self.steps} steps: "
                    + ", ".join(self.differs[:8]))
        if self.planned_steps == 0:
            return (f"the same bits after {self.steps} steps, none of them planned: this says nothing "
                    "of a plan. Next: verify() behind the first planned step")
        return f"the same bits after {self.steps} steps, {self.planned_steps} of them planned"


# So many times the difference of two plain runs is none of the budget's.
_SPREAD = 2


def verify(budget, trained, step, steps):
    if not steps >= 1:
        raise ValueError(f"steps={steps!r}: 1 or more")
    unrepeated, plain_difference = [], 0.0
    with budget.resident():
        before = _Snapshot(trained)
        returned = [bits_of(step()) for _ in range(steps)]
        plainly = _Snapshot(trained)
        if not before.differences(plainly) and not any(_has_numbers(r) for r in returned):
            raise TidepoolError("verify(): step() changed nothing and returned no number, so there "
                                "is nothing to compare. Next: a function that does all of a step")
        before.restore(trained)
        if trained.device.has_streams:  # whose kernels may add in another order each time
            again = [bits_of(step()) for _ in range(steps)]
            unrepeated = (plainly.differences(_Snapshot(trained))
                          + _steps_that_differ(returned, again))
            plain_difference = plainly.largest_difference(trained)
            before.restore(trained)
    planned = budget.report().planned_steps
    inside = []
    for _ in range(steps):
        with budget.step():
            out = step()
        inside.append(bits_of(out))  # behind the step, whose ops must not be others
        del out
    planned = budget.report().planned_steps - planned
    with budget.resident():
        differs = plainly.differences(_Snapshot(trained)) + _steps_that_differ(returned, inside)
        difference = plainly.largest_difference(trained) if unrepeated else 0.0
    return Verdict(steps, planned, differs, unrepeated, plain_difference, difference)


def _steps_that_differ(one, other):
    return [f"step {i + 1}" for i, (a, b) in enumerate(zip(one, other)) if a != b]


class _Snapshot:
    """Copies of what a step changes: all that the model and the optimizers have, parameters that an
    optimizer alone has too; what is in the optimizers' groups, and their schedulers; random states. They
    lie on the host: a device's budget has no room for them."""

    def __init__(self, trained):
        parameters = _parameters_of(trained)
        self._bytes = {name: _copy_on_host(s)
                       for name, s in _storages_of(trained, parameters).items()}
        self._gradients = {name: (p, _on_host(p.grad)) for name, p in parameters.items()}
        self._states = [(o, {owner: _without_tensors(values) for owner, values in o.state.items()})
                        for o in trained.optimizers]
        self._groups = [(group, _copied(_without_parameters(group)))
                        for o in trained.optimizers for group in o.param_groups]
        self._schedulers = [(s, _copied(s.state_dict())) for s in _schedulers_of(trained.optimizers)]
        self._random_states = _random_states(trained.device)

    def restore(self, trained):
        for optimizer, before in self._states:
            _forget_new(optimizer.state, before)
        for name, storage in _storages_of(trained, _parameters_of(trained)).items():
            if name in self._bytes:
                storage.copy_(self._bytes[name])
        for parameter, gradient in self._gradients.values():
            parameter.grad = None if gradient is None else gradient.clone().to(parameter.device)
        for group, before in self._groups:
            for key in [k for k in _without_parameters(group) if k not in before]:
                del group[key]
            group.update(_copied(before))
        for scheduler, before in self._schedulers:
            scheduler.load_state_dict(_copied(before))
        _set_random_states(trained.device, self._random_states)

    def differences(self, other):
        """Names of what is not the same, bit by bit."""
        mine, theirs = self._bytes, other._bytes
        found = [n for n in {**mine, **theirs}
                 if n not in mine or n not in theirs or not _same_bytes(mine[n], theirs[n])]
        found += [f"the gradient of {name}" for name, (_, gradient) in self._gradients.items()
                  if bits_of(gradient) != bits_of(other._gradients[name][1])]
        for what, here, there in (
                ("the state of an optimizer", self._states, other._states),
                ("the options of an optimizer", self._groups, other._groups),
                ("a scheduler", self._schedulers, other._schedulers)):
            if ([bits_of([*saved.values()]) for _, saved in here]
                    != [bits_of([*saved.values()]) for _, saved in there]):
                found.append(what)
        if bits_of(self._random_states[0]) != bits_of(other._random_states[0]):
            found.append("the random state")
        return found


    def largest_difference(self, trained):
        """Of the model's parameters from what they were, relative to the largest value of each."""
        largest = 0.0
        for name, parameter in trained.model.named_parameters():
            part = local(parameter).detach()
            if name in self._bytes and part.is_floating_point():
                now = part.cpu()
                was = torch.empty(0, dtype=part.dtype).set_(
                    self._bytes[name], part.storage_offset(), part.size(), part.stride())
                scale = was.double().abs().max().item() or 1.0
                largest = max(largest, (now.double() - was.double()).abs().max().item() / scale)
        return largest


# ---- what there is


def _parameters_of(trained):
    """By name, those that an optimizer alone has behind the model's."""
    found = dict(trained.model.named_parameters())
    known = {id(p) for p in found.values()}
    for number, optimizer in enumerate(trained.optimizers):
        others = [p for group in optimizer.param_groups for p in group["params"]
                  if id(p) not in known]
        found.update({f"parameter {i} of optimizer {number}": p for i, p in enumerate(others)})
    return found


def _storages_of(trained, parameters):
    found = {name: storage for name, _, storage in trained.persistent_anywhere()}
    known = {s._cdata for s in found.values()}
    for name, parameter in parameters.items():
        storage = storage_of(local(parameter))
        if storage._cdata not in known:
            found[name] = storage
    return found


def _without_parameters(group):
    return {key: value for key, value in group.items() if key != "params"}


def _without_tensors(values):
    """State of one parameter: its tensors are None, of which there are storages."""
    return {key: None if isinstance(value, torch.Tensor) else _copied(value)
            for key, value in values.items()}


# Its name before torch 2.0 had an underscore.
_Scheduler = (getattr(torch.optim.lr_scheduler, "LRScheduler", None)
              or torch.optim.lr_scheduler._LRScheduler)


def _schedulers_of(optimizers):
    """Nothing leads from an optimizer to them."""
    known = {id(o) for o in optimizers}
    return [o for o in instances.of_any(_Scheduler)
            if id(getattr(o, "optimizer", None)) in known]


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
                values[name] = _copied(before[owner][name])


def _random_states(where):
    numpy = sys.modules.get("numpy")
    return ([d.random_state() for d in (device.HOST, where)], random.getstate(),
            numpy.random.get_state() if numpy is not None else None)


def _set_random_states(where, states):
    for d, state in zip((device.HOST, where), states[0]):
        d.set_random_state(state)
    random.setstate(states[1])
    if states[2] is not None:
        sys.modules["numpy"].random.set_state(states[2])


# ---- values


def _copy_on_host(storage):
    return storage.clone() if device.HOST.has(storage) else storage.cpu()


def _on_host(tensor):
    return None if tensor is None else tensor.detach().cpu().clone()


def _copied(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(v) for key, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_copied(v) for v in value)
    return value


def _same_bytes(one, other):
    if one.nbytes() != other.nbytes():
        return False
    flat = [torch.empty(0, dtype=torch.uint8).set_(s, 0, (s.nbytes(),), (1,)) for s in (one, other)]
    return torch.equal(*flat)


def bits_of(value):
    """What is equal for two values if all bits of them are: also for NaN, and for -0.0. Of objects
    that are neither numbers nor texts nor containers of such the type alone is compared."""
    kind = type(value).__name__
    if isinstance(value, torch.Tensor):
        return (kind, value.dtype, tuple(value.shape), _bytes_of(local(value).detach()))
    if isinstance(value, complex):
        return (kind, struct.pack("dd", value.real, value.imag))
    if isinstance(value, float):
        return (kind, struct.pack("d", value))
    if isinstance(value, (int, str, bytes)):
        return (kind, value)
    if isinstance(value, dict):
        return (kind, [(bits_of(k), bits_of(v)) for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return (kind, [bits_of(v) for v in value])
    if dataclasses.is_dataclass(value):
        return (kind, [bits_of(getattr(value, f.name)) for f in dataclasses.fields(value)])
    if hasattr(value, "dtype") and hasattr(value, "tobytes"):  # of numpy
        return (kind, str(value.dtype), value.shape,
                bits_of(value.tolist()) if value.dtype.hasobject else value.tobytes())
    return (kind,)


def _bytes_of(tensor):
    dense = tensor.to_dense() if tensor.layout != torch.strided else tensor
    own = dense.cpu().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return device.HOST.content(storage_of(own))


def _has_numbers(bits):
    """Whether something that can differ is in what bits_of() gave."""
    return any(isinstance(part, bytes) or isinstance(part, (list, tuple)) and _has_numbers(part)
               for part in bits)
