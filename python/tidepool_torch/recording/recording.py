"""Records one step of an unchanged training script: its ops, its storages, what uses what when.

A recording holds weak references only: a strong one to a gradient would change what autograd does
with it. A storage whose weak reference is held keeps its identity (`_cdata`) to itself also after
its death, so one that is found under a known identity and alive is the known one.
"""

import gc

import torch

from ..base import advice, calls, refusals
from ..base.primitives import VIEWS_ARE_USES, StorageWeakRef, living, may_move, nbytes, storage_of

READ, WRITE, UPDATE = "read", "write", "update"

# Ops whose result is more than a function of their arguments' values: never run again.
_RUN_ONCE = {"aten::_local_scalar_dense"}

# Hidden writes of arguments up to so many elements are looked for while recording.
_AUDITED_ELEMENTS = 4096


class StorageRecord:
    """One storage. `born` and `freed` count ops: of the one that made it (-1: from before the step)
    and the first that ran without it (None: it outlived the step). One that lies elsewhere than the
    model takes no bytes of a budget, and stays where it is."""

    __slots__ = ("number", "name", "bytes", "kind", "persistent", "pinned", "hidden", "born",
                 "freed", "accesses", "reference", "of_last_step", "elsewhere")

    def __init__(self, number, name, storage, kind, persistent, born, elsewhere=False):
        self.number = number
        self.name = name
        self.bytes = 0 if elsewhere else nbytes(storage)
        self.kind = kind
        self.persistent = persistent
        self.pinned = self.elsewhere = elsewhere
        self.hidden = False  # written without a word in a schema: running statistics
        self.born = born
        self.freed = None
        self.accesses = []
        self.reference = StorageWeakRef(storage)
        self.of_last_step = False  # a gradient that the step before left

    @property
    def from_before(self):
        """From before the step and neither the model's nor the optimizer's: the batch, constants,
        gradients of the last step, buckets."""
        return self.born < 0 and not self.persistent


class OpRecord:
    """One op that is of account. `inputs` are storages, one for each tensor among the arguments in
    order; `made` those that are new in its result; `shapes` has (position, shape) of the arguments
    that are from before the step and not the model's: what other steps may bring in other sizes."""

    __slots__ = ("func", "name", "modes", "inputs", "made", "time", "workspace", "random", "again",
                 "shapes")

    def __init__(self, func, modes, inputs, made, measured, random, again):
        self.func = func
        self.name = func._schema.name.removeprefix("aten::")
        self.modes = modes  # storage -> READ, WRITE or UPDATE
        self.inputs = inputs
        self.made = made
        self.time, self.workspace = measured
        self.random = random
        self.again = again  # whether a second run gives the same
        self.shapes = ()


class Recording:
    """`dispatched` has a row for each call that PyTorch made: the op function, its index in `ops` or
    -1 for a mere view, and what that op has in `inputs` and `made`. `device` is where the model is."""

    def __init__(self, where):
        self.device = where
        self.storages = []
        self.ops = []
        self.dispatched = []
        self.notes = []
        self.scratch = 0  # that threads of others take beside the ops
        self.held = 0  # by the script, behind the step, which no op of it has seen
        self.inexact = 0  # bytes by which what an op takes may be more when it is measured again
        self.update = None  # the first op of the optimizer's that changes what is trained
        self.switched = False  # a switch of the process was turned within the step

    def compute_time(self):
        return sum(op.time for op in self.ops)

    def holders(self, most):
        """(name, bytes) of the largest storages at the peak."""
        peak = self._peak()[1]
        there = [s for s in self.storages if max(s.born, 0) <= peak
                 and (s.persistent or s.freed is None or s.freed > peak)]
        there.sort(key=lambda s: -s.bytes)
        return [(s.name, s.bytes) for s in there[:most]]

    def peak(self):
        """Most bytes that the step holds at once, all storages and workspaces counted."""
        return self._peak()[0]

    def left_behind(self):
        """Bytes of what the step leaves beside what lives from step to step."""
        return sum(self.device.block_bytes(s.bytes) for s in self.storages
                   if s.freed is None and not s.persistent)

    def _peak(self):
        """That, and the op at which it is so."""
        change = [0] * (len(self.ops) + 2)
        for s in self.storages:
            change[max(s.born, 0)] += self.device.block_bytes(s.bytes)
            if s.freed is not None and not s.persistent:
                change[s.freed] -= self.device.block_bytes(s.bytes)
        most = (0, 0)
        now = 0
        for k, op in enumerate(self.ops):
            now += change[k]
            most = max(most, (now + op.workspace, -k))
        return most[0], -most[1]


class Recorder:
    """Runs the calls of one step on the device `where` and writes them down. `persistent` has (name,
    kind, storage) of all that lives there from step to step, `gradients()` (name, storage) of those that
    there are now; `is_away` tells of a storage whether it is without bytes for now."""

    def __init__(self, where, persistent, gradients, is_away=lambda storage: False):
        self.recording = Recording(where)
        self.recording.inexact = self._inexact()
        self._is_away = is_away
        self._without_holes = where.counts.without_holes()  # until the last call was measured
        self._switches = self._switches_now()
        self._others = None  # what is to be said of somebody's hooks
        self._known = {}  # _cdata -> StorageRecord of a living storage
        self._gradients = gradients
        self._unnamed = False  # whether a backward pass may have made gradients since they were named
        self._last = ()  # records of the storages of the call before
        self._mortal = {}
        for name, kind, storage in persistent:
            if storage._cdata not in self._known:
                self._add(storage, name, kind, True, -1)
        for name, storage in gradients():
            if storage._cdata not in self._known:
                self._add(storage, f"{name}.grad.of_before", "gradient", False,
                          -1).of_last_step = True

    def run(self, func, args, kwargs):
        tensors = calls.tensors_in(args, kwargs)
        self._look_for_others(self._last)
        self._bury()
        inputs = tuple(self._record_of(storage_of(t)) for t in tensors)
        changed = {self._known[storage_of(t)._cdata].number
                   for t in calls.written(func, args, kwargs)}
        changed |= self._before(func, kwargs, tensors)
        if not self.recording.switched and self._switches_now() != self._switches:
            self.recording.switched = True
        refusals.look_for_compiled()
        if self._others is None:
            self._others = advice.of_hooks()
        audited = self._copies_of_small(func, tensors, changed)
        out, took, most, random = self._measured(func, args, kwargs, tensors)
        changed |= self._hidden_writes(func, args, kwargs, audited)
        made = self._births(func, out, tensors)
        index = -1
        if made or changed or (tensors and (VIEWS_ARE_USES or not calls.tensors_out(out))):
            index = len(self.recording.ops)
            blocks = sum(self.recording.device.block_bytes(self.recording.storages[i].bytes)
                         for i in made)
            workspace = max(0, most - blocks)
            again = (func._schema.name not in _RUN_ONCE and calls.is_trusted(func)
                     and self.recording.device.repeats(func._schema.name)
                     and not _takes_generator(args, kwargs)
                     and all(self._is_plain(t) for t in tensors + calls.tensors_out(out)))
            op = OpRecord(func, self._modes(inputs, made, changed), inputs, made,
                          (took, workspace), random or (again and _may_draw(func)), again)
            self._look_for_gradients(changed)
            op.shapes = tuple((i, t.shape) for i, t in enumerate(tensors)
                              if self.recording.storages[inputs[i]].from_before)
            self._add_op(op)
        self.recording.dispatched.append((func, index, inputs, made))
        self._last = [self.recording.storages[i] for i in (*inputs, *made)]
        self._behind(func, tensors, index)
        return out

    def _inexact(self):
        return self.recording.device.counts.inexact

    def _switches_now(self):
        return self.recording.device.switches()

    def _is_elsewhere(self, storage):
        return not self.recording.device.has(storage)

    _is_plain = staticmethod(calls.is_plain)

    def _measured(self, func, args, kwargs, tensors):
        """Runs the call: (result, what int() makes nanoseconds of behind the step, most bytes that it
        took, its result counted, whether it drew random numbers)."""
        here = self.recording.device
        random_state = here.random_state()
        begun = here.counts.begin()
        timer = here.time_of_op()
        out = func(*args, **kwargs)
        took = timer.stop()
        most = here.counts.most_since(begun)
        return out, took, most, not torch.equal(random_state, here.random_state())

    def _before(self, func, kwargs, tensors):
        """Storages that the call writes besides, for a class that knows more than this one."""
        return set()

    def _behind(self, func, tensors, index):
        pass

    def finish(self):
        self._without_holes = None
        for op in self.recording.ops:
            op.time = int(op.time)
        gc.collect()
        self._look_for_others(self._last)
        self._look_for_others(self._mortal.values())
        self._bury()
        self._name_gradients()
        for record in self.recording.storages:
            record.reference = None
        self._forbid_reruns()
        self.recording.notes += [note for note in (self._others, advice.of_gradients(self.recording))
                                 if note]
        return self.recording

    def _look_for_gradients(self, changed):
        """An optimizer's first op behind a backward pass: behind the step they may be gone."""
        if torch.is_grad_enabled():
            self._unnamed = True
        elif self._unnamed and any(self._is_state(self.recording.storages[i]) for i in changed):
            self._unnamed = False
            self._name_gradients()
            if self.recording.update is None:
                self.recording.update = len(self.recording.ops)

    @staticmethod
    def _is_state(storage):
        """Of the model or an optimizer, which counts steps on the host."""
        return storage.persistent or (storage.elsewhere and storage.born < 0)

    def _name_gradients(self):
        for name, storage in self._gradients():
            record = self._known.get(storage._cdata)
            if record is not None and record.born >= 0:
                record.kind = "gradient"
                record.name = f"{record.number}.{name}.grad"

    def _forbid_reruns(self):
        """Others may write what they can look at by address, between a run and the next; and a
        switch that is turned within the step may stand otherwise at a rerun."""
        if self.recording.switched:
            self.recording.notes.append("a switch of PyTorch's is turned within the step: nothing "
                                        "is computed again")
        for op in self.recording.ops:
            if self.recording.switched or any(self.recording.storages[i].pinned
                                              for i in op.inputs):
                op.again = False

    def _add(self, storage, name, kind, persistent, born):
        number = len(self.recording.storages)
        record = StorageRecord(number, name if persistent else f"{number}.{name}", storage, kind,
                               persistent, born, self._is_elsewhere(storage))
        # One that numpy or another process looks at says so.
        record.pinned = record.elsewhere or (not self._is_away(storage) and not may_move(storage))
        self.recording.storages.append(record)
        self._known[storage._cdata] = record
        if not persistent:
            self._mortal[storage._cdata] = record
        return record

    def _record_of(self, storage):
        record = self._known.get(storage._cdata)
        if record is None:
            record = self._add(storage, "input", "input", False, -1)
        elif not (record.pinned or self._is_away(storage) or may_move(storage)):
            record.pinned = True
        return record.number

    def _look_for_others(self, records):
        """Between two calls a script may have had numpy look at a storage, and change what no op
        reads any more but one that is to run again."""
        for record in records:
            storage = None if record.pinned else living(record.reference)
            if storage is not None and not self._is_away(storage) and not may_move(storage):
                record.pinned = True

    def _bury(self):
        dead = [c for c, record in self._mortal.items() if record.reference.expired()]
        for identity in dead:
            record = self._mortal.pop(identity)
            del self._known[identity]
            record.freed = len(self.recording.ops)

    def _births(self, func, out, tensors):
        made = []
        have = {storage_of(t)._cdata for t in tensors}
        name = func._schema.name.split("::")[1]
        for storage in calls.fresh_storages(out, have):
            if storage._cdata not in self._known:
                made.append(self._add(storage, name, "activation", False,
                                      len(self.recording.ops)).number)
        return tuple(made)

    @staticmethod
    def _modes(inputs, made, changed):
        modes = dict.fromkeys(inputs, READ)
        modes.update(dict.fromkeys(sorted(changed), UPDATE))
        modes.update(dict.fromkeys(made, WRITE))
        return modes

    def _add_op(self, op):
        for number, mode in op.modes.items():
            self.recording.storages[number].accesses.append((len(self.recording.ops), mode))
        self.recording.ops.append(op)

    def _copies_of_small(self, func, tensors, changed):
        if calls.is_view(func):
            return []
        return [(t, t.detach().clone()) for t in tensors
                if t.numel() <= _AUDITED_ELEMENTS and calls.is_plain(t)
                and self._known[storage_of(t)._cdata].number not in changed]

    def _hidden_writes(self, func, args, kwargs, audited):
        """Storages that the call wrote though its schema does not say so."""
        hidden = set()
        for position in calls.hidden_writes(func):
            name = func._schema.arguments[position].name
            for tensor in calls.argument(position, name, args, kwargs):
                hidden.add(self._known[storage_of(tensor)._cdata].number)
        for tensor, before in audited:
            if not torch.equal(_comparable(tensor.detach()), _comparable(before)):
                number = self._known[storage_of(tensor)._cdata].number
                if number not in hidden:
                    self.recording.notes.append(
                        f"{func._schema.name} writes an argument that its schema does not mark")
                    hidden.add(number)
        for number in hidden:
            self.recording.storages[number].hidden = True
        return hidden


def _may_draw(func):
    """Whether it draws random numbers under some arguments: dropout that trains, of a module that was
    evaluated while it was recorded."""
    return (torch.Tag.nondeterministic_seeded in func.tags
            or any(a.name == "generator" for a in func._schema.arguments))


def _takes_generator(args, kwargs):
    return any(isinstance(a, torch.Generator) for a in (*args, *kwargs.values()))


def _comparable(tensor):
    """Bits, so that a NaN equals itself."""
    if tensor.is_complex() or tensor.is_floating_point():
        return tensor.contiguous().reshape(-1).view(torch.uint8)
    return tensor
