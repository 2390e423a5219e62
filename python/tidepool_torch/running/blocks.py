"""Blocks of one plan's placements, and PyTorch's storages that point at them.

A placement is a block that the runtime owns, a managed storage a pointer to one of them. No strong
reference to a storage of the step is held.
"""

import threading

from ..base import device, primitives
from ..base.primitives import StorageWeakRef
from .away import not_here


class Blocks:
    """`region` has the plan's host bytes. Between steps bytes are where the plan's boundary says,
    from enter() to forget(). `lock` is for what the copy threads change too; now() is the
    instruction that the step has come to."""

    def __init__(self, schedule, region, now):
        self.schedule = schedule
        self.program = schedule.program
        self.plan = schedule.plan
        self.region = region
        self.device = schedule.program.device
        self._now = now
        self.copies = None  # what carries them out
        self.lock = threading.RLock()
        self.block = {}  # placement on the device -> the storage that owns its bytes
        self.points_at = {}  # tensor -> the placement that PyTorch's storage looks at; None: away
        self.reference = {}  # tensor -> PyTorch's storage
        self.identity = {}  # tensor -> `_cdata` of that
        self.ours = set()  # all of these
        self.newest = {}  # tensor -> the placements that have its newest value
        self.landed = set()  # tensors that have their place already, while the plan ends
        self.mine = set()  # tensors whose storages are pointers in this step
        self.lent = {}  # tensor -> placement whose bytes are PyTorch's between two steps
        self.unborn = set()  # tensors that persist from this step on, and are not made yet
        self.stay = set()  # tensors whose storages own their bytes since others look at them
        self.looked_at = {}  # placement -> the storage of such a one that owns its block's bytes
        self.left = {}  # tensor -> calls of this step that still use it
        self.moved_out = self.moved_in = 0
        self._texts = {}  # (tensor, the op that uses it next) -> what is said of it while it is away

    def name(self, t):
        return self.program.tensors[t].name

    def number_of(self, storage_number):
        """The managed tensor that a storage of the recording is, or None."""
        t = self.program.tensor_of.get(storage_number)
        return t if t in self.schedule.managed else None

    def _on_device(self, p):
        return self.plan.placements[p].on_device

    # ---- between steps

    def enter(self, storages, away):
        """Takes the persistent storages, by name: their bytes go where the boundary has them."""
        bound = [(t, p, storages[self.name(t)])
                 for t, p in self.plan.boundary.items()
                 if t in self.schedule.managed and t not in self.program.unborn]
        # Out before in: at no time is more on the device than before or behind.
        for t, p, storage in bound:
            if self._on_device(p):
                continue
            offset = self.plan.placements[p].offset
            if storage in away:
                away.hand_over(storage, self.region, offset)
                self.say_away(t, storage)
            else:
                device.of(storage).out(storage, self.region, offset)
                self.moved_out += storage.nbytes()
                self.say_away(t, storage)
            self._take(t, p, storage, None)
        self.mine = {t for t, p, _ in bound if not self._on_device(p)}
        for t, p, storage in bound:
            if self._on_device(p):
                if storage in away:
                    away.back_anyhow(storage)
                self.lent[t] = p
                self._look(t, p, storage, p)

    def holds(self, storages):
        """Whether those that are away are the storages that enter() took."""
        return all(self.identity[t] == storages[self.name(t)]._cdata
                   for t in self.plan.boundary
                   if t in self.schedule.managed and t not in self.lent)

    def is_away(self, storage):
        """Whether it is one of those that enter() took, and without bytes between steps."""
        return any(identity == storage._cdata and self.points_at.get(t) is None and t not in self.landed
                   for t, identity in self.identity.items())

    def copy_of(self, storage):
        """A storage with the bytes of one that is away, in a step or between two, or None."""
        with self.lock:  # so that no copy thread ends the life of what is read
            for t, identity in self.identity.items():
                if (identity == storage._cdata and self.points_at.get(t) is None and t not in self.stay
                        and t not in self.landed):
                    return self._copy_of_newest(t, storage)
        return None

    def _copy_of_newest(self, t, storage):
        device.of(storage).wait()  # for the copy that brought it there
        here = [self.block[p] for p in self.newest[t] if p in self.block]
        if here:
            return here[0].clone()
        there = next(self.plan.placements[p] for p in self.newest[t] if not self._on_device(p))
        copy = device.of(storage).fresh(storage.nbytes())
        device.of(copy).back(copy, self.region, there.offset)
        return copy

    def forget(self):
        """All storages have bytes of their own: none is of the plan any more."""
        for of_the_plan in (self.block, self.reference, self.identity, self.ours, self.newest,
                            self.points_at, self.mine, self.lent, self.stay, self.looked_at, self.landed):
            of_the_plan.clear()

    # ---- a step

    def begin(self, storages):
        """`storages` are the persistent ones by name, as they were found to fit."""
        for t, p in self.lent.items():
            storage = storages[self.name(t)]
            self.block[p] = primitives.take_bytes(storage)
            self._take(t, p, storage, p)
        self.lent.clear()
        self.mine = set(self.schedule.managed)
        self.unborn = set(self.program.unborn)
        self.stay.clear()
        self.looked_at.clear()
        self.left = dict(self.schedule.accesses_left)

    def lent_at_end(self):
        """Placements whose bytes are PyTorch's behind this step."""
        return [p for t, p in self.plan.boundary.items()
                if t in self.schedule.managed and self._on_device(p)]

    def end(self):
        """What goes on into the next step looks at where the boundary has it; the rest is over."""
        for p in self.lent_at_end():
            self._lend(self.schedule.tensor_at(p), p)
        for t in [t for t in self.reference if t not in self.plan.boundary]:
            del self.reference[t], self.identity[t]
            self.points_at.pop(t, None)
            self.newest.pop(t, None)
        self.ours.clear()
        self.ours.update(identity for t, identity in self.identity.items() if t not in self.lent)

    def _lend(self, t, p):
        """The bytes are the storage's own until the next step: so it can say then whether numpy has
        looked at it, and must not move any more."""
        block = self.block.pop(p)
        storage = primitives.living(self.reference[t])
        if storage is not None and t not in self.stay:
            primitives.set_bytes(storage, block, self.points_at[t] is None)
        self.points_at[t] = p
        self.mine.discard(t)
        self.lent[t] = p

    def born(self, t, p, storage):
        """A call made a storage of the plan's."""
        self.unborn.discard(t)
        self.block[p] = primitives.take_bytes(storage)
        self._take(t, p, storage, p)

    def _take(self, t, p, storage, points_at):
        self._look(t, p, storage, points_at)
        self.ours.add(self.identity[t])

    def _look(self, t, p, storage, points_at):
        self.reference[t] = reference = StorageWeakRef(storage)
        self.identity[t] = reference.cdata
        self.newest[t] = {p}
        self.points_at[t] = points_at

    def let_stay(self, storage):
        """Others look at its memory from now on: what it looks at becomes its own. How many bytes do
        not go where the plan has them."""
        with self.lock:
            t = next((t for t, c in self.identity.items() if c == storage._cdata), None)
            p = self.points_at.get(t)
            if p is None or t not in self.mine:
                return 0
            primitives.swap(storage, self.block[p])  # the block looks at the same bytes now
            self.looked_at[p] = storage
            self.stay.add(t)
            self.mine.discard(t)
            self.points_at[t] = None
            return storage.nbytes()

    def has_left(self, t, p):
        """Whether others look at the tensor, in another place than the plan has it."""
        return t in self.stay and p not in self.looked_at

    def point(self, t, p, storage):
        if t in self.stay:
            return
        primitives.set_bytes(storage, primitives.alias(self.block[p]), self.points_at[t] is None)
        self.points_at[t] = p

    def say_away(self, t, storage):
        until = self.schedule.next_use(t, self._now())
        text = self._texts.get((t, until))
        if text is None:
            text = self._texts[t, until] = not_here(self.name(t), until,
                                                    self.program.tensors[t].persistent)
        primitives.set_away(storage, text)

    def is_last_of(self, p):
        """Whether nothing of the plan's follows behind the life of this placement."""
        t = self.schedule.tensor_at(p)
        return not self.left.get(t) and t not in self.plan.boundary

    def end_life(self, p):
        """The bytes of a placement are no longer needed."""
        t = self.schedule.tensor_at(p)
        places = self.newest.get(t)
        if places is not None:
            places.discard(p)
        if not self._on_device(p):
            return
        self.looked_at.pop(p, None)
        block = self.block.pop(p, None)  # None: of what is not born yet
        if block is None:
            return
        if self.points_at.get(t) == p:
            self.points_at[t] = None
            storage = primitives.living(self.reference.get(t))
            if storage is not None and self.is_last_of(p):
                # PyTorch holds it longer than it uses it: the bytes are the storage's own again.
                self.copies.settle(p)
                primitives.swap(storage, block)
                self.mine.discard(t)
                return
            if storage is not None:
                self.say_away(t, storage)
        self.copies.retire(p, block)

    def copy(self, x, stream=None):
        """Carries out a copy instruction, on any thread, or asks a stream of the device for it."""
        source, target = self.plan.placements[x.source], self.plan.placements[x.target]
        if source.tensor in self.unborn:
            return
        size = self.program.tensors[source.tensor].bytes
        if source.on_device:
            block = self.block[x.source]  # it stays until the copy is done
            with self.copies.on(stream):
                self.device.out(block, self.region, target.offset)
            self.moved_out += size
        else:
            block = self.copies.fresh_for(x.target, size, stream)
            with self.copies.on(stream):
                self.device.back(block, self.region, source.offset)
            self.moved_in += size
        with self.lock:
            if not source.on_device:
                self.block[x.target] = block
            places = self.newest.get(source.tensor)
            if places is not None and x.source in places:
                places.add(x.target)
