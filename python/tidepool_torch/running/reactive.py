"""Runs a step inside the budget without a plan: what was not used for longest leaves first.

Serves the steps before there is a plan, steps of shapes that have none, and what is left of a step
that differs from its plan.
"""

import collections

import torch

from ..base import calls, primitives
from ..base.compat import OUT_OF_MEMORY, bytes_of_tensor
from ..base.errors import HostTierFull
from ..base.primitives import StorageWeakRef, storage_of
from .away import OF_A_STEP
from .limit import SLACK

# A step that does a smaller share of what another did is none to judge the others by.
_WHOLE = 0.9

# What a call leaves taken beside its results is the kernel's from here on; less is of blocks' headers.
_KEPT_BY_KERNEL = 64 << 10

# Where asking for live bytes takes long, so many ops at most go by unasked.
_UNASKED = 64

# Bytes that each of these is believed to take beside its results.
_UNSEEN = 4 << 10

# When something leaves there, this part of the budget more does.
_AHEAD = 32

# Kinds of calls that are known, at most.
_MOST_KINDS = 20_000

_SCRATCH_LIKE_INPUTS = {"aten::convolution", "aten::convolution_backward",
                        "aten::mkldnn_convolution"}


def _kind_of(func, args, kwargs, tensors):
    """What decides how much a call takes. What makes tensors out of none has their sizes among its other
    arguments."""
    return func, tuple((t.shape, t.stride(), t.dtype) for t in tensors) or repr((args, kwargs))


def _is_pointwise(func):
    """Whether its kernel goes from element to element, for which it keeps nothing."""
    return torch.Tag.pointwise in func.tags if hasattr(torch.Tag, "pointwise") else False


class _Candidate:
    __slots__ = ("reference", "name")

    def __init__(self, reference, name):
        self.reference = reference
        self.name = name


class Reactive:
    """Steps inside of `limit` on the device `where`. A recorder, where there is one, runs the calls."""

    def __init__(self, where, away, limit, min_bytes):
        self._where = where
        self.away = away
        self.limit = limit
        self.min_bytes = min_bytes
        self.short = 0  # most bytes that were missing for an op
        self.learns = False  # whether what kernels keep for good shows in these calls
        self.recorder = None
        self._candidates = collections.OrderedDict()  # _cdata -> _Candidate, longest unused first
        self._stay = {}  # _cdata -> reference: never moved in this step
        self._sizes = {}
        self._keep_nothing = set()  # kinds of calls that were seen to leave nothing taken
        self._sure = 0  # bytes that are left at least
        self._unasked = 0  # ops since they were counted
        self._work = 0  # bytes that forward passes of this step made, while there is no budget
        self._most_work = 0

    def begin(self, persistent, stay, recorder=None):
        """`persistent` has (name, storage) that may leave; `stay` storages that must not."""
        self.recorder = recorder
        self.short = 0
        self._most_work = max(self._most_work, self._work)
        self._work = 0
        self._sure = 0
        self._candidates.clear()
        self._stay = {s._cdata: StorageWeakRef(s) for s in stay}
        for name, storage in persistent:
            self._touch(storage, name)

    def run(self, func, args, kwargs):
        tensors = calls.tensors_in(args, kwargs)
        if ((calls.is_view(func) and not primitives.VIEWS_ARE_USES)
                or calls.not_of_the_step(tensors)):
            return self._call(func, args, kwargs)
        used = {storage_of(t)._cdata for t in tensors}
        for t in tensors:
            storage = storage_of(t)
            if storage in self.away:
                self._room(primitives.nbytes(storage), used)
                name = self.away.name_of(storage)
                self._with_room(used, self.away.back, storage)
                self._touch(storage, name)
            else:
                self._note_argument(storage)
        kind = _kind_of(func, args, kwargs, tensors)
        need = 0
        if self.limit.size is not None:
            need = self._need(kind, func, args, kwargs, tensors)
            self._room(need, used)
        looks = self.learns and kind not in self._keep_nothing and not _is_pointwise(func)
        before = self._live_beside(tensors) if looks else None
        out = self._call(func, args, kwargs)
        made = calls.tensors_out(out)
        if self._sure:
            self._compare(func, need, made, used)
        if looks:
            self._learn(kind, self._live_beside(tensors + made) - before)
        # Averages of weights and buckets are none of a forward pass: nothing there needs a gradient.
        if (self.limit.size is None and torch.is_grad_enabled()
                and any(t.requires_grad for t in tensors)):
            self._work += sum(bytes_of_tensor(t) for t in made)
        for t in tensors + made:
            self._touch(storage_of(t), None)
        return out

    def _compare(self, func, need, made, used):
        """Compares what a call has made with what it was believed to need."""
        took = sum(s.nbytes() for s in calls.fresh_storages(made, used))
        self._sure = max(0, self._sure - max(0, took - need))
        if "out" in func._schema.overload_name or "resize" in func._schema.name:
            self._sure = 0  # what it writes may have grown

    def _learn(self, kind, kept):
        if abs(kept) >= _KEPT_BY_KERNEL:
            self.limit.keep(kept)
            self._sure = 0
            return
        if len(self._keep_nothing) >= _MOST_KINDS:
            self._keep_nothing.clear()
        self._keep_nothing.add(kind)

    def _live_beside(self, tensors):
        """Live bytes but for those of some tensors."""
        here = [s for s in map(storage_of, tensors) if self._where.has(s)]
        return (self.limit.counts.live()
                - sum({s._cdata: self._where.counted(primitives.nbytes(s)) for s in here}.values()))

    def did_less(self):
        """Whether this step made less in its forward passes than one before, while there was no
        budget: fewer micro-batches, or a batch that the data had no more rows for."""
        return self._work < _WHOLE * self._most_work

    def bring_back(self, storages, leaving):
        """Those of `storages` that are away, whatever that takes; of the storages `leaving` those go
        that make room for them. True where all fit."""
        staying = set(self._candidates) - {s._cdata for s in leaving}
        fits = True
        for storage in [s for s in storages if s in self.away]:
            fits = self._room_between(primitives.nbytes(storage), staying) and fits
            fits = self.away.back_anyhow(storage) and fits
        return fits

    def bring_back_what_fits(self, storages):
        for storage in storages:
            if not self._room_between(primitives.nbytes(storage), self._candidates):
                break
            try:
                self.away.back(storage)
            except OUT_OF_MEMORY:
                break

    def _call(self, func, args, kwargs):
        def run():
            if self.recorder is not None:
                return self.recorder.run(func, args, kwargs)
            return func(*args, **kwargs)

        if calls.writes(func):
            return run()  # one that fails may have done a part
        return self._with_room({storage_of(t)._cdata for t in calls.tensors_in(args, kwargs)}, run)

    def _with_room(self, used, work, *arguments):
        """What work() returns. Where the device has no room all leaves but `used`, and it begins anew."""
        try:
            return work(*arguments)
        except OUT_OF_MEMORY:
            pass
        while self._evict_one(used) is not None:
            pass
        return work(*arguments)

    def _note_argument(self, storage):
        """What was there before the step and is not the model's or the optimizer's stays: the batch,
        buckets, constants, whose owners may read them outside the dispatcher."""
        identity = storage._cdata
        if identity not in self._candidates and identity not in self._stay:
            self._stay[identity] = StorageWeakRef(storage)

    def _touch(self, storage, name):
        identity = storage._cdata
        stays = self._stay.get(identity)
        if stays is not None:
            if not stays.expired():
                return
            del self._stay[identity]
        known = self._candidates.get(identity)
        if known is not None:
            self._candidates.move_to_end(identity)
        elif (self._where.has(storage) and primitives.nbytes(storage) >= self.min_bytes
              and (storage in self.away or primitives.may_move(storage))):
            self._candidates[identity] = _Candidate(StorageWeakRef(storage), name or OF_A_STEP)
        else:
            self._stay[identity] = StorageWeakRef(storage)

    def _room(self, size, used):
        """Makes room for `size` more bytes; False where nothing is left that may go."""
        if self.limit.size is None:
            return True
        if self._unasked < _UNASKED and self._sure >= size + SLACK:
            self._unasked += 1
            self._sure -= size + _UNSEEN
            return True
        self.away.bury()
        self._unasked = 0
        is_slow = self.limit.counts.is_slow
        ahead = 0
        while True:
            left = self.limit.left()
            over = size + SLACK - left
            if over + ahead <= 0:
                self._sure = left - size - _UNSEEN if is_slow else 0
                return True
            ahead = self.limit.size // _AHEAD if is_slow else 0
            if not self._evict(over + ahead, used):
                self._sure = 0
                self.short = max(self.short, over - SLACK)
                return over <= SLACK

    def _room_between(self, size, used):
        """Makes room between steps, where a full host tier is no error: what comes back empties it."""
        try:
            return self._room(size, used)
        except HostTierFull:
            return False

    def _evict(self, size, used):
        """Evicts so many bytes, as far as there are such; returns whether any went."""
        any_went = False
        while size > 0:
            gone = self._evict_one(used)
            if gone is None:
                break
            any_went, size = True, size - gone
        return any_went

    def _evict_one(self, used):
        """Evicts what was unused for longest. Returns its bytes; None: nothing may leave."""
        for identity, candidate in self._candidates.items():
            if identity in used:
                continue
            del self._candidates[identity]
            storage = primitives.living(candidate.reference)
            if storage is None or storage in self.away:
                return 0
            try:
                # Others may look at its memory since it was made: numpy, dlpack.
                if not primitives.may_move(storage):
                    raise primitives.NotMovable()
                size = storage.nbytes()
                self.away.put(storage, candidate.name)
                return size
            except primitives.NotMovable:
                self._stay[identity] = candidate.reference
                return 0
        return None

    def _need(self, kind, func, args, kwargs, tensors):
        """Bytes of the call's new storages, found out with tensors that have none."""
        known = self._sizes.get(kind)
        if known is None:
            if len(self._sizes) >= _MOST_KINDS:
                self._sizes.clear()
            known = self._sizes[kind] = self._infer(func, args, kwargs, tensors)
        return known

    @staticmethod
    def _infer(func, args, kwargs, tensors):
        inputs = sum({storage_of(t)._cdata: bytes_of_tensor(t) for t in tensors}.values())
        returned = func._schema.returns
        if all(r.alias_info is not None for r in returned):
            return 0

        def without_bytes(t):
            return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")

        try:
            other = {k: v for k, v in kwargs.items() if k != "device"}
            if "generator" in other:
                other["generator"] = None  # without bytes nothing is drawn
            if any(a.name == "device" for a in func._schema.arguments):
                other["device"] = "meta"
            out = func(*calls.with_tensors(tuple(args), without_bytes),
                       **calls.with_tensors(other, without_bytes))
            need = sum(s.nbytes() for s in calls.fresh_storages(out, ()))
        except Exception:  # pylint: disable=broad-except
            # Not every op has a form without bytes; what it makes is rarely more than what it reads.
            need = inputs
        if func._schema.name in _SCRATCH_LIKE_INPUTS:
            need += inputs
        return need
