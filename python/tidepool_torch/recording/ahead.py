"""A step that is recorded without being run: under fake tensors, which have shapes and no bytes.

That is done in a copy of this process (forked.py), so that nothing here is changed, whatever a step
does. There the model and the optimizers get fake tensors in place of their own, and two steps are
recorded. Bytes and aliases are exact, times and workspaces are those of costs.py. What a step can
only know from values (`.item()`, `nonzero`) ends it with CannotPlanAhead.
"""

import collections
import dataclasses
import os
import traceback

import torch
from torch._subclasses.fake_tensor import (DataDependentOutputException,
                                           DynamicOutputShapeException, FakeTensor, FakeTensorMode,
                                           UnsupportedFakeTensorException, unset_fake_temporarily)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from ..base import calls
from ..base.errors import TidepoolError
from ..base.forked import CopyFailed, in_copy
from ..base.list_ops import groups_of, joined, lists_of
from ..base.primitives import storage_of
from .costs import measured_costs, unreduced_bytes
from .program import StepProgram
from .recording import UPDATE, WRITE, Recorder
from .trained import Trained

_OF_VALUES = (DataDependentOutputException, DynamicOutputShapeException,
              UnsupportedFakeTensorException)
_NOT_THE_USERS = tuple(folder + os.sep for folder in (
    os.path.dirname(os.path.abspath(torch.__file__)),
    os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


class CannotPlanAhead(TidepoolError):
    """The step does what cannot be known without running it."""


@dataclasses.dataclass
class FakeStep:
    """`key` is what a Budget knows a step by, its first call; `gradients` are names of those that
    were there when it began."""

    recording: object
    key: tuple
    gradients: frozenset


def record_ahead(model, optimizers, step, costs):
    """(the first step, a later one) as FakeSteps; the first is None where it is as later ones are.
    CannotPlanAhead."""
    trained = Trained(model, optimizers, ())
    unmovable = [t for t in trained.tensors() if not storage_of(t).resizable()]
    try:
        found, why_not = in_copy(
            lambda beat: _record_both(trained, step, costs, unmovable, beat))
    except CopyFailed as error:
        raise CannotPlanAhead(str(error)) from None
    if why_not is not None:
        raise CannotPlanAhead(why_not)
    return found


def _record_both(real, step, costs, unmovable, beat):
    """In the copy: (what record_ahead() returns, None) or (None, why it cannot be)."""
    fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        trained = _with_fakes(real, fake_mode, unmovable)
        first = _record(trained, step, fake_mode, costs, beat)
        later = _record(trained, step, fake_mode, costs, beat)
    except _OF_VALUES as error:
        return None, (f"{getattr(error, 'func', None) or error}: what this op makes depends on "
                      f"values, which a step that is not run does not have{_place_of(error)}")
    except CannotPlanAhead as error:
        return None, f"{error}{_place_of(error)}"
    except BaseException as error:  # pylint: disable=broad-except
        # Of whatever kind: what fake tensors cannot do, an op without a form for them, `.numpy()`.
        text = str(error).strip().partition("\n")[0]
        if "fork-based multiprocessing" in text:
            return None, ("a backward pass ran on the device in this process, and a copy of it can run none "
                          "then. Next: fit() before the first backward pass")
        return None, (f"with tensors that have no bytes the step ended in a "
                      f"{type(error).__name__}: {text}{_place_of(error)}")
    return ((None if _is_same(first, later) else first), later), None


def _place_of(error):
    """The line of the user's that it comes from, for the end of a message."""
    lines = [f for f in traceback.extract_tb(error.__traceback__)
             if not os.path.abspath(f.filename).startswith(_NOT_THE_USERS)]
    return f" ({os.path.basename(lines[-1].filename)}:{lines[-1].lineno})" if lines else ""


def later_step(model, optimizers, step):
    try:
        costs = measured_costs(Trained(model, optimizers, ()).device)
        return record_ahead(model, optimizers, step, costs)[1]
    except CannotPlanAhead as error:
        raise CannotPlanAhead(f"{error}. Next: give plan() a step that does not do this, or "
                              "plan(..., run=True), which runs the step three times") from None


def program_of(fake, name, min_bytes, recompute, home):
    program = StepProgram(fake.recording, name, min_bytes, 1.0, recompute, home)
    for op in fake.recording.ops:
        # Whether an op draws random numbers is known of those that PyTorch marks so; a state that is
        # kept for nothing costs little, and one that is not kept changes the training.
        op.random = op.random or op.again
    return program


def _record(trained, step, fake_mode, costs, beat):
    watch = _Watch(trained, costs, beat)
    with fake_mode, watch:
        step()
    if watch.recorder is None:
        raise CannotPlanAhead("the step runs no op")
    recording = watch.recorder.finish()
    return FakeStep(recording, watch.key, watch.gradients)


def _is_same(one, other):
    a, b = one.recording, other.recording
    return (a.dispatched == b.dispatched and one.gradients == other.gradients
            and [(s.name, s.bytes, s.accesses) for s in a.storages]
            == [(s.name, s.bytes, s.accesses) for s in b.storages])


class _Watch(TorchDispatchMode):
    """Lies above the fake mode and sees what a Budget's own mode sees of a real step."""

    def __init__(self, trained, costs, beat):
        super().__init__()
        self._trained = trained
        self._costs = costs
        self._beat = beat
        self.recorder = None
        self.key = None
        self.gradients = frozenset()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self._beat()
        if func.namespace == "prim":
            return func(*args, **kwargs)  # how Python asks a fake tensor for its device
        tensors = calls.tensors_in(args, kwargs)
        if any(t.device.type == "meta" for t in tensors):
            return func(*args, **kwargs)
        if any(t.requires_grad and not isinstance(t, FakeTensor) for t in tensors):
            # Its gradient would become a fake one.
            raise CannotPlanAhead("the step trains a tensor that the model does not have")
        args, kwargs = (calls.with_tensors(a, self._trained.fake) for a in (tuple(args), kwargs))
        groups = groups_of(func, args, kwargs) if lists_of(func) else None
        if groups is None:
            return self._record(func, args, kwargs)
        return joined([self._record(func, *group) for group in groups])

    def _record(self, func, args, kwargs):
        if self.recorder is None:
            if calls.is_view(func):
                return func(*args, **kwargs)
            self.key = calls.key_of(func, args, kwargs, self._trained.model)
            self.gradients = frozenset(name for name, _ in self._trained.gradients())
            self.recorder = _FakeRecorder(self._trained, self._costs)
        return self.recorder.run(func, args, kwargs)


class _FakeRecorder(Recorder):
    def __init__(self, trained, costs):
        self._trained = trained
        self._costs = costs
        with unset_fake_temporarily():
            super().__init__(trained.device, trained.persistent(), trained.gradients)
        for identity, record in self._known.items():
            record.pinned = identity in trained.unmovable

    def _inexact(self):
        return 0

    def _is_elsewhere(self, storage):
        return False  # storages of fake tensors do not know it

    def finish(self):
        recording = super().finish()
        for name, kind, storage in self._trained.persistent():
            record = self._known.get(storage._cdata)
            if record is not None and record.born >= 0:
                self._becomes_state(record, name, kind)
        return recording

    def _becomes_state(self, record, name, kind):
        """The optimizer's state that the first step makes is a tensor that lives from step to step,
        which the op that makes it updates: where a plan leaves it behind that step is free then."""
        record.name, record.kind, record.persistent = name, kind, True
        record.accesses = [(k, UPDATE if mode == WRITE else mode) for k, mode in record.accesses]
        for k, mode in record.accesses:
            self.recording.ops[k].modes[record.number] = mode
            self.recording.ops[k].again &= mode != UPDATE

    @staticmethod
    def _is_plain(tensor):
        return calls.is_plain(tensor) or (
            isinstance(tensor, FakeTensor) and tensor.layout == torch.strided
            and not tensor.is_quantized and not tensor.is_conj() and not tensor.is_neg())

    def _switches_now(self):
        with unset_fake_temporarily():
            return super()._switches_now()

    def _births(self, func, out, tensors):
        made = super()._births(func, out, tensors)
        for number in made:
            record = self.recording.storages[number]
            record.bytes = max(record.bytes, unreduced_bytes(func, tensors))
        return made

    def _copies_of_small(self, func, tensors, changed):
        return []  # there are no values to compare

    def _measured(self, func, args, kwargs, tensors):
        out = func(*args, **kwargs)
        have = {storage_of(t)._cdata for t in tensors}
        unreduced = unreduced_bytes(func, tensors)
        made = sum(self.recording.device.block_bytes(max(s.nbytes(), unreduced))
                   for s in calls.fresh_storages(out, have))
        most = made + self._costs.workspace(func, tensors, out)
        draws = torch.Tag.nondeterministic_seeded in func.tags
        return out, self._costs.time(func, args, kwargs, tensors, out), most, draws


class _FakeTrained(Trained):
    """The model and the optimizers, which have fake tensors."""

    def __init__(self, model, optimizers, where, fake, names):  # pylint: disable=super-init-not-called
        self.device = where
        self.model = model
        self.optimizers = optimizers
        self._names = names
        self.unmovable = frozenset()  # `_cdata` of storages that others look at
        self.fake = fake  # of a tensor that is none, always the same one


def _with_fakes(real, fake_mode, unmovable):
    """Gives model and optimizers fake tensors, for good: a _FakeTrained."""
    model, optimizers = real.model, real.optimizers
    fakes = WeakIdKeyDictionary()

    def fake(tensor):
        if isinstance(tensor, FakeTensor):
            return tensor
        made = fakes.get(tensor)
        if made is None:
            made = fakes[tensor] = _fake_of(tensor, fake_mode)
        return made

    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            tensors.update({k: fake(t) for k, t in tensors.items() if t is not None})
    names = {id(t): n for n, t in [*model.named_parameters(), *model.named_buffers()]}
    for number, optimizer in enumerate(optimizers):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                # One that the model does not have goes by the name that Trained gives the real one.
                names.setdefault(id(fake(parameter)), f"optimizer{number}.{id(parameter)}")
            group["params"] = [fake(p) for p in group["params"]]
        state = collections.defaultdict(dict)
        for owner, values in optimizer.state.items():
            state[fake(owner) if isinstance(owner, torch.Tensor) else owner] = _changed(
                values, fake)
        optimizer.state = state
    trained = _FakeTrained(model, optimizers, real.device, fake, names)
    trained.unmovable = {storage_of(fake(t))._cdata for t in unmovable}
    return trained


def _changed(values, fake):
    """State of an optimizer with fake tensors; new containers."""
    if isinstance(values, torch.Tensor):
        return fake(values)
    if isinstance(values, dict):
        return {key: _changed(value, fake) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return type(values)(_changed(value, fake) for value in values)
    return values


def _fake_of(tensor, fake_mode):
    if tensor.dim() == 0 and not tensor.requires_grad:
        # An optimizer's count of steps: it asks for the value.
        with fake_mode:
            return torch.tensor(_value(tensor), dtype=tensor.dtype, device=tensor.device)
    made = fake_mode.from_tensor(tensor, static_shapes=True)
    for hook in (tensor._backward_hooks or {}).values():
        made.register_hook(hook)
    for hook in (tensor._post_accumulate_grad_hooks or {}).values():
        made.register_post_accumulate_grad_hook(hook)
    return made


def _value(tensor):
    with unset_fake_temporarily():
        return tensor.item()
