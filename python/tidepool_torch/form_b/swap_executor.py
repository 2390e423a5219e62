"""Runs one plan where storages are resized (form B): copies only, one place for each tensor.

What is managed is PyTorch's own storage: it has bytes or it has none. Copies run between the calls,
in the order of the plan's list: on another thread they would have to hold the storage, and autograd
asks who holds one before it adds to it in place. Each call's tensors are compared with the plan's,
all of them: an op that reads a storage without bytes ends the process.
"""

import time

from ..base import calls, device, primitives
from ..base.primitives import NotMovable, StorageWeakRef, storage_of
from ..running.away import not_here
from ..running.executor import BESIDE, DivergedBehind
from ..running.growth import Diverged, Growth
from ..running.schedule import LEFT_ALONE


class SwapExecutor:
    """`region` has the plan's host bytes. One step: begin(), run() for each call, end(); or
    land() where it ends early. Between steps bytes are where the plan's boundary says, until
    land()."""

    in_limbo = 0  # bytes that only copies use: none goes on beside the ops
    op_runs = True  # whether an op may have done a part, where it has no room

    def __init__(self, schedule, region):
        self.schedule = schedule
        self.program = schedule.program
        self.plan = schedule.plan
        self.region = region
        self.calls = [*schedule.calls, (None, None)]  # what lies behind the last is no call
        self.moved_out = self.moved_in = self.reruns = 0
        self.stalled = 0.0  # seconds that copies took
        self.growth = Growth(schedule.made, schedule.program.min_bytes)
        self.highest = schedule.highest
        self.look = lambda func: None  # called before that call runs
        self._ours = {}  # `_cdata` of PyTorch's storage -> tensor
        self.position = 0
        self._reference = {}  # tensor -> PyTorch's storage
        self._newest = {}  # tensor -> the placements that have its newest value
        self._left = {}  # tensor -> calls of this step that still use it
        self._next = 0

    # ---- between steps

    def enter(self, storages, away):
        """Takes the persistent storages, by name: their bytes go where the boundary has them."""
        bound = [(t, p, storages[self.program.tensors[t].name])
                 for t, p in self.plan.boundary.items() if t in self.schedule.managed]
        # Out before in: at no time is more on the device than before or behind.
        for t, p, storage in bound:
            if self._on_device(p):
                continue
            offset = self.plan.placements[p].offset
            if storage in away:
                away.hand_over(storage, self.region, offset)
            else:
                device.of(storage).out(storage, self.region, offset)
                self.moved_out += storage.nbytes()
                self._set_away(t, storage)
            self._take(t, p, storage)
        for t, p, storage in bound:
            if self._on_device(p):
                if storage in away:
                    away.back(storage)
                self._take(t, p, storage)

    def holds(self, storages):
        """Whether these are the storages that enter() took."""
        return all(self._reference[t].cdata == storages[self.program.tensors[t].name]._cdata
                   for t in self.plan.boundary if t in self.schedule.managed)

    def is_away(self, storage):
        """Whether the plan moves it, and it has no bytes."""
        return storage._cdata in self._ours and not primitives.has_bytes(storage)

    def copy_of(self, storage):
        """A storage with the bytes of one that is away, in a step or between two, or None."""
        t = self._ours.get(storage._cdata)
        if t is None or primitives.has_bytes(storage):
            return None
        copy = device.of(storage).fresh(self.program.tensors[t].bytes)
        device.of(copy).back(copy, self.region, self._there(t).offset)
        return copy

    def _there(self, t):
        """The placement on the host that has the newest value."""
        return next(self.plan.placements[p] for p in self._newest[t] if not self._on_device(p))

    def has(self, storage):
        """Whether the plan moves it."""
        return storage._cdata in self._ours

    def _take(self, t, p, storage):
        self._reference[t] = reference = StorageWeakRef(storage)
        self._ours[reference.cdata] = t
        self._newest[t] = {p}

    # ---- a step

    def begin(self, storages):
        """`storages` are those that enter() took."""
        self.position = self._next = 0
        self._left = dict(self.schedule.accesses_left)
        self.growth.begin()

    def run(self, func, args, kwargs):
        """One call of PyTorch's. Diverged, with nothing of the call done, where it is another."""
        if self.growth.spare < 0:
            raise self.growth.outgrown(func)
        tensors = calls.tensors_in(args, kwargs)
        found = [self._ours.get(storage_of(t)._cdata) for t in tensors]
        expected, _ = self.calls[self.position]
        if expected is not func:
            if calls.not_of_the_step(tensors):
                return func(*args, **kwargs)
            position = self.schedule.where_it_is_next(func, self.position)
            if position is None:
                return self._beside_the_plan(func, args, kwargs, tensors, found)
            self.position = position
        if found != self.schedule.inputs[self.position]:
            raise Diverged(func, self._what_differs(found))
        action = self.calls[self.position][1]
        if action is None or action is LEFT_ALONE:
            self.position += 1
            out = func(*args, **kwargs)
            self.growth.look_at(self.position - 1, out, args, kwargs)
            return out
        for place, shape in action.op.shapes:
            if tensors[place].shape != shape:
                raise Diverged(func, f"other sizes {tuple(tensors[place].shape)} instead of "
                                     f"{tuple(shape)}")
        if self.position == self.highest:
            self.look(func)
        return self._act(action, func, args, kwargs, tensors)

    def end(self):
        """The rest of the schedule, behind the last call. Diverged where calls are missing."""
        if self.growth.spare < 0:
            raise self.growth.outgrown("the end")
        if self.schedule.where_it_is_next(None, self.position) is None:
            raise Diverged("the end", "instead of "
                           f"{calls.name_of(self.calls[self.position][0])}")
        self._walk(len(self.schedule.instructions))
        for t in [t for t in self._reference if t not in self.plan.boundary]:
            self._forget(t)

    def land(self, away):
        """Ends the plan: what PyTorch still holds gets a place that does not depend on it. Returns
        (name, storage) of what may leave the device."""
        living = []
        for t, reference in list(self._reference.items()):
            storage = primitives.living(reference)
            if storage is not None:
                if not primitives.has_bytes(storage):
                    self._to_away(t, storage, away)
                living.append((self._name(t), storage))
            # One by one: where a copy fails, the rest is landed the next time.
            self._forget(t)
        return living

    def _to_away(self, t, storage, away):
        away.put_copy(storage, self.region, self._there(t).offset, self._name(t))

    def _forget(self, t):
        del self._ours[self._reference.pop(t).cdata]
        del self._newest[t]

    def close(self):
        self.region.release()

    def _act(self, action, func, args, kwargs, tensors):
        i = action.instruction
        self._walk(i)
        out = func(*args, **kwargs)
        self.position += 1
        self._next = i + 1
        for t, p in action.updates:
            self._newest[t] = {p}
        for t in action.touched:
            self._left[t] -= 1
        if action.births:
            self._take_births(action, tensors, out)
        else:
            self.growth.look_at(self.position - 1, out, args, kwargs)
        try:
            self._end_lives(i)
        except NotMovable as error:
            raise DivergedBehind(func, str(error), out) from None
        return out

    def _beside_the_plan(self, func, args, kwargs, tensors, found):
        """A call that the plan does not have, of those that change nothing for it."""
        expected = self.calls[self.position][0]
        if any(t is not None for t in found) or (calls.writes(func) and not calls.is_view(func)):
            raise Diverged(func, f"instead of {calls.name_of(expected)}")
        out = func(*args, **kwargs)
        known = [storage_of(t)._cdata for t in tensors]
        if sum(s.nbytes() for s in calls.fresh_storages(out, known)) > BESIDE:
            raise DivergedBehind(func, f"instead of {calls.name_of(expected)}", out)
        return out

    def _take_births(self, action, tensors, out):
        fresh = calls.fresh_storages(out, [storage_of(t)._cdata for t in tensors])
        sizes = [storage.nbytes() for storage in fresh]
        if sizes != action.sizes:
            raise DivergedBehind(action.op.func, f"results of {sizes} bytes instead of "
                                 f"{action.sizes}", out)
        for born, storage in zip(action.births, fresh):
            if born is not None:
                self._take(*born, storage)

    def _what_differs(self, found):
        expected = self.schedule.inputs[self.position]
        if len(found) != len(expected):
            return f"{len(found)} tensors instead of {len(expected)}"
        at = next(i for i, t in enumerate(expected) if t != found[i])
        if expected[at] is None:
            return f"{self._name(found[at])}, another tensor"
        return f"another tensor than {self._name(expected[at])}"

    # ---- walking

    def _walk(self, upto):
        """What lies before instruction `upto` of the plan's list."""
        try:
            while self._next < upto:
                i = self._next
                x = self.schedule.instructions[i]
                if x.is_copy:
                    self._copy(x)
                self._end_lives(i)
                self._next = i + 1
        except NotMovable as error:
            raise Diverged("too early", str(error)) from None

    def _copy(self, x):
        source, target = self.plan.placements[x.source], self.plan.placements[x.target]
        t = source.tensor
        storage = primitives.living(self._reference.get(t))
        if storage is None:
            return  # a call that uses it will be another than the plan's
        start = time.perf_counter()
        size = self.program.tensors[t].bytes
        if source.on_device:
            device.of(storage).out(storage, self.region, target.offset)
            self.moved_out += size
        else:
            here = device.of(storage)
            primitives.bring_back(storage, size,
                                  lambda fresh: here.back(fresh, self.region, source.offset))
            self.moved_in += size
        if x.source in self._newest[t]:
            self._newest[t].add(x.target)
        self.stalled += time.perf_counter() - start

    def _end_lives(self, i):
        for p in self.schedule.ending_at[i]:
            t = self.schedule.tensor_at(p)
            storage = primitives.living(self._reference.get(t))
            if storage is None:
                continue
            # One that PyTorch holds longer than it uses it keeps its bytes.
            if self._on_device(p) and (self._left.get(t) or t in self.plan.boundary):
                self._set_away(t, storage)
            self._newest[t].discard(p)

    def _set_away(self, t, storage):
        primitives.set_away(storage, not_here(self._name(t)))

    def _on_device(self, p):
        return self.plan.placements[p].on_device

    def _name(self, t):
        return self.program.tensors[t].name
