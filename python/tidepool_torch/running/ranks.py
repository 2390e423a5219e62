"""What a rank keeps to that trains together with others.

Tidepool does not distribute; it runs below what does. Budget, plan, host bytes and files are each
rank's own, and after planning was agreed no rank calls a collective because of it. What a
collective was given may be read and written on another thread, by address, until somebody waits: it
never moves and is never computed again.
"""

import os

import torch
import torch.distributed as dist

from ..base import calls
from ..base.errors import BudgetInfeasible, TidepoolError
from ..base.primitives import StorageWeakRef, storage_of
from ..recording.recording import READ, Recorder
from .reactive import Reactive

_COLLECTIVES = ("c10d::", "_c10d_functional::", "fsdp::", "symm_mem::")
_RAW = ("aten::empty", "aten::empty_strided", "aten::zeros")

# DDP lays its buckets out anew behind the first step, and with find_unused_parameters or
# static_graph the steps after that differ too.
_WARM_UP = 3

# What gloo takes beside its arguments to reduce them: each of its threads a part of them, at most
# so much (measured). It does so on its threads, so no count of a call shows it.
_GLOO_SCRATCH = 2 << 20
_GLOO_THREADS = 2
_GLOO_PIECE = 64 << 10

_is_collective = {}


def is_collective(func):
    known = _is_collective.get(func)
    if known is None:
        known = _is_collective[func] = func._schema.name.startswith(_COLLECTIVES)
    return known


def used_elsewhere(func, kwargs, tensors):
    """Those of a call's tensors that may be used outside of it from now on: all of a collective's,
    and what an `out=` form writes, which is how buckets are filled before their first collective."""
    if is_collective(func):
        return tensors
    if func._schema.overload_name == "out":
        out = kwargs.get("out")
        return [out] if isinstance(out, torch.Tensor) else []
    return []


def scratch(func, tensors):
    """Bytes that a collective takes at most while it runs."""
    name = func._schema.name
    if not is_collective(func) or "reduce" not in name:
        return 0
    return sum(min(_GLOO_SCRATCH, t.nbytes // dist.get_world_size() + _GLOO_PIECE) for t in tensors)


class Scratch:
    """The most that collectives of a step take at once beside their arguments."""

    def __init__(self):
        self._largest = [0] * _GLOO_THREADS

    def add(self, func, tensors):
        self._largest = sorted([*self._largest, scratch(func, tensors)])[1:]

    def bytes(self):
        return sum(self._largest)


def makes_raw(func, tensors):
    """Whether the call makes room for somebody who fills it: a bucket, a buffer of a collective."""
    return not tensors and func._schema.name in _RAW


class RankRecorder(Recorder):
    """A recorder that knows what DistributedDataParallel and its like do outside of the calls."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._outside = set()  # storages that are used outside of the calls
        self._filled_from = []  # (storage, op that copies it to a bucket)
        self._scratch = Scratch()

    def finish(self):
        recording = super().finish()
        self._keep_on_device()
        for number in self._outside:
            recording.storages[number].pinned = True
        for op in recording.ops:
            op.again = op.again and self._outside.isdisjoint(op.modes)
        recording.scratch = self._scratch.bytes()
        return recording

    def _keep_on_device(self):
        """A gradient that is copied to a bucket is looked at before, without a call: it is used
        from when it is there."""
        for number, index in self._filled_from:
            storage = self.recording.storages[number]
            before = [k for k, _ in storage.accesses if k < index]
            for k in range(before[-1] + 1 if before else index, index):
                self.recording.ops[k].modes.setdefault(number, READ)
                storage.accesses.append((k, READ))
            storage.accesses.sort(key=lambda access: access[0])

    def _before(self, func, kwargs, tensors):
        numbers = {self._known[storage_of(t)._cdata].number
                   for t in used_elsewhere(func, kwargs, tensors)}
        self._outside |= numbers
        if not is_collective(func):
            return set()
        self._scratch.add(func, tensors)
        return numbers

    def _behind(self, func, tensors, index):
        if index < 0:
            return
        op = self.recording.ops[index]
        if makes_raw(func, tensors):
            self._outside.update(op.made)
        if func._schema.overload_name == "out":
            self._filled_from += [(n, index) for n in op.inputs if n not in self._outside]

    def _copies_of_small(self, func, tensors, changed):
        return super()._copies_of_small(func, tensors, changed | self._outside)


class RankReactive(Reactive):
    """Reactive steps in which what is used outside of the calls stays."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._scratch = Scratch()

    def run(self, func, args, kwargs):
        tensors = calls.tensors_in(args, kwargs)
        if calls.not_of_the_step(tensors):
            return func(*args, **kwargs)
        if is_collective(func):
            self._scratch.add(func, tensors)
        for tensor in used_elsewhere(func, kwargs, tensors):
            self.show(storage_of(tensor))
            self._hold(storage_of(tensor))
        out = super().run(func, args, kwargs)
        if makes_raw(func, tensors):
            for tensor in calls.tensors_out(out):
                self._hold(storage_of(tensor))
        return out

    def show(self, storage):
        """Somebody reads it outside the dispatcher, now."""
        if storage in self.away:
            self._room(storage.nbytes(), {storage._cdata})
            self.away.back(storage)
            self._touch(storage, None)

    def _hold(self, storage):
        self._candidates.pop(storage._cdata, None)
        self._stay[storage._cdata] = StorageWeakRef(storage)

    def _room(self, size, used):
        return super()._room(size + self._scratch.bytes(), used)

    def _need(self, kind, func, args, kwargs, tensors):
        # Asked for its result's bytes, a collective would run.
        return 0 if is_collective(func) else super()._need(kind, func, args, kwargs, tensors)


class Ranks:
    """This rank among those that train `model` with it. `together` is False in a process that
    trains alone."""

    def __init__(self, model):
        self.together = dist.is_available() and dist.is_initialized()
        self.agreed = not self.together
        self.rank = dist.get_rank() if self.together else 0
        self._group = getattr(model, "process_group", None)
        self._model = model if _is_ddp(model) else None

    def model(self, model):
        """The model below DistributedDataParallel, whose names the user knows."""
        return model if self._model is None else self._model.module

    def bucket_bytes(self):
        """What DistributedDataParallel holds beside the model: room for each gradient."""
        if self._model is None:
            return 0
        return sum(p.nbytes for p in self._model.parameters() if p.requires_grad)

    def warm_up(self, asked):
        if asked is not None:
            return asked
        return _WARM_UP if self.together else 1

    def recorder(self):
        return RankRecorder if self.together else Recorder

    def reactive(self):
        return RankReactive if self.together else Reactive

    def share_of(self, host):
        """This rank's part of host bytes that the ranks of a machine share."""
        here = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if self.together else 1
        return host if host is None else max(1, host // here)

    def add_hooks(self, model, look):
        """look(gradient) is called when a gradient is there and before DistributedDataParallel asks
        whether it lies in the bucket, which reads its address outside the dispatcher."""
        if not self.together:
            return []
        return [p.register_post_accumulate_grad_hook(lambda p: look(p.grad))
                for p in model.parameters() if p.requires_grad and calls.is_plain(p)]

    def name(self):
        """In front of messages."""
        return f"rank {self.rank}: " if self.together else ""

    def all_or_none(self, work, decides=False):
        """work() on every rank; where it fails on one, it fails on all, with the same exception
        that has the worst rank's numbers. All ranks call this at the end of the same step. With
        `decides`, work() says whether there is a plan; once all have one, each goes its own way."""
        mine, result = None, None
        try:
            result = work()
        except Exception as error:  # pylint: disable=broad-except
            mine = error
        told = [None] * dist.get_world_size(self._group)
        dist.all_gather_object(told, (self._verdict(mine), bool(result)), group=self._group)
        error = _worst([verdict for verdict, _ in told])
        if error is not None:
            raise error from (None if isinstance(mine, BudgetInfeasible) else mine)
        self.agreed = decides and all(done for _, done in told)
        return result

    def _verdict(self, error):
        """What the other ranks are told of how it went here: nothing, or who failed and how."""
        if error is None:
            return None
        infeasible = isinstance(error, BudgetInfeasible)
        words = str(error) if infeasible or isinstance(error, TidepoolError) else repr(error)
        return self.rank, infeasible, words, error.smallest if infeasible else 0


def _is_ddp(model):
    return isinstance(model, torch.nn.parallel.DistributedDataParallel)


def _worst(verdicts):
    """One exception of all that failed, the same on every rank; None where none did."""
    failed = [v for v in verdicts if v is not None]
    if not failed:
        return None
    others = [v for v in failed if not v[1]]
    if others:
        rank, _, words, _ = others[0]
        return TidepoolError(f"rank {rank} of {len(verdicts)}: {words}")
    rank, _, words, smallest = max(failed, key=lambda v: (v[3], -v[0]))
    return BudgetInfeasible(f"rank {rank} of {len(verdicts)}: {words}", smallest)
