"""Runs one plan: walks its steady schedule beside the calls that PyTorch makes."""

import collections
import contextlib

import torch
from torch import Tensor

from ..base import calls
from ..base.errors import TidepoolError
from . import exports
from .blocks import Blocks
from .copy_streams import CopyStreams
from .copy_threads import AT_ONCE, CopyThreads
from .growth import Diverged, Growth
from .read_ahead import ReadAhead
from .reruns import Copies, KeptCall
from .schedule import LEFT_ALONE, NOT_PASSING


# Bytes that a call may make of which the plan knows nothing.
BESIDE = 4096


class DivergedBehind(Diverged):
    """The call ran, with this result."""

    def __init__(self, func, reason, out):
        super().__init__(func, reason)
        self.out = out


@contextlib.contextmanager
def as_a_kernel_call(device):
    """Ops called here run as they do below the dispatcher: without autograd and autocast."""
    with torch.no_grad(), device.without_autocast():
        yield


class Executor:
    """`region` has the plan's host bytes. enter() takes the storages that persist; then, for each
    step: begin(), run() for each call, end(); or land() where it ends early."""

    def __init__(self, schedule, kept, region):
        self.schedule = schedule
        self.program = schedule.program
        self.plan = schedule.plan
        # What lies behind the last call is none.
        self.calls = [*schedule.calls, (None, None)]
        self.passing = [*schedule.passing, NOT_PASSING]
        self.by_value = kept.by_value
        self.growth = Growth(schedule.made, schedule.program.min_bytes)
        self.highest = schedule.highest
        self.python_looks_at = schedule.python_looks_at
        self.look = lambda func: None  # called right before that call runs
        self.blocks = Blocks(schedule, region, lambda: self._next)
        self.ours = self.blocks.ours
        self.copies = self.blocks.copies = self._make_copies()
        reads_files = self.blocks.device.has_streams and not region.is_memory
        self._ahead = ReadAhead(schedule, region) if reads_files else None
        self.reruns = 0
        self.kept_calls = {}
        self._copies_of_small = Copies()
        self._reruns_left = {}
        self.read_later = set()  # `_cdata` of what kept calls hold by reference, until they have run
        self._readers = collections.Counter()  # how many such calls for each
        self.position = 0
        self._next = 0
        self._unfinished = None
        self.op_runs = False  # whether the op of a call was begun
        self._stays = 0  # bytes that stay since others look at them

    def _make_copies(self):
        device = self.blocks.device
        common = self.schedule, self.plan.copy_streams, device
        if device.has_streams:
            return CopyStreams(*common, self.copy, self._finish)
        small = [self._is_small(x) for x in self.schedule.instructions]
        return CopyThreads(*common, self.blocks.lock, small, self.copy, self._finish)

    @property
    def moved_out(self):
        return self.blocks.moved_out

    @property
    def moved_in(self):
        return self.blocks.moved_in

    @property
    def stalled(self):
        return self.copies.stalled

    @property
    def in_limbo(self):
        return self.copies.in_limbo()

    # ---- between steps

    def enter(self, storages, away):
        self._next = 0
        self.blocks.enter(storages, away)

    def holds(self, storages):
        return self.blocks.holds(storages)

    def copy_of(self, storage):
        return self.blocks.copy_of(storage)

    def has(self, storage):
        """Whether the storage looks at a block of the plan's, or is away by it."""
        return storage._cdata in self.ours

    def is_away(self, storage):
        return self.blocks.is_away(storage)

    def close(self):
        self.copies.close()
        self.blocks.region.release()

    # ---- a step

    def begin(self, storages):
        self.position = self._next = 0
        self.growth.begin()
        self._stays = 0
        self._unfinished = None
        self._uses_left = [count for _, count in self.schedule.endings]
        self._reruns_left = dict(self.schedule.reruns_of)
        self.read_later.clear()
        self._readers.clear()
        self._copies_of_small.clear()
        self.blocks.begin(storages)
        self.copies.begin()
        if self._ahead is not None:
            self._ahead.begin(self.copies.done)
        exports.tell(self._looks_at)

    def _looks_at(self, storage):
        """Something outside of PyTorch's dispatcher is about to, and may write it unseen."""
        self._stays += self.blocks.let_stay(storage)
        for kept in list(self.kept_calls.values()):
            kept.is_looked_at(storage)

    def run(self, func, args, kwargs):
        """One call of PyTorch's. Diverged, with nothing of the call done, where it is another."""
        self.op_runs = False
        if self.growth.spare < self._stays:
            raise self.growth.outgrown(func, self._stays)
        expected, action = self.calls[self.position]
        if expected is not func:
            tensors = calls.tensors_in(args, kwargs)
            if calls.not_of_the_step(tensors):
                return func(*args, **kwargs)
            position = self.schedule.where_it_is_next(func, self.position)
            if position is None:
                return self._beside_the_plan(func, args, kwargs, tensors, expected)
            self.position = position
            action = self.calls[position][1]
        if action is not None and action is not LEFT_ALONE:
            return self._act(action, func, args, kwargs)
        if self.position in self.schedule.lets_go:
            self._finish_late()
        if action is LEFT_ALONE:
            if self._ours_among(calls.tensors_in(args, kwargs)):
                raise Diverged(func, "another tensor")
            self._check_written(func, args, kwargs)
        self.position += 1
        self.op_runs = True
        out = func(*args, **kwargs)
        self.growth.look_at(self.position - 1, out, args, kwargs)
        return out

    def may_pass(self, args, written):
        """Whether a call that the plan leaves alone is on nothing that the plan moves, nor changes
        what is read again: `written` is the position of what it writes, or -1."""
        ours = self.ours
        for argument in args:
            if isinstance(argument, Tensor) and argument.untyped_storage()._cdata in ours:
                return False
        return written < 0 or args[written].untyped_storage()._cdata not in self.read_later

    def _check_written(self, func, args, kwargs):
        if self.read_later and any(t.untyped_storage()._cdata in self.read_later
                                   for t in calls.written(func, args, kwargs)):
            raise Diverged(func, "a tensor that is to be read again")

    def _beside_the_plan(self, func, args, kwargs, tensors, expected):
        """A call that the plan does not have, of those that change nothing for it: callbacks that
        log, every so many steps."""
        if not calls.is_view(func):
            if calls.writes(func) or self._ours_among(tensors):
                raise Diverged(func, f"instead of {calls.name_of(expected)}")
        out = func(*args, **kwargs)
        known = [t.untyped_storage()._cdata for t in tensors]
        if sum(s.nbytes() for s in calls.fresh_storages(out, known)) > BESIDE:
            raise DivergedBehind(func, f"instead of {calls.name_of(expected)}", out)
        return out

    def _ours_among(self, tensors):
        """Whether one of them is over a storage that the plan moves."""
        return any(t.untyped_storage()._cdata in self.ours for t in tensors)

    def _act(self, action, func, args, kwargs):
        tensors = calls.tensors_in(args, kwargs)
        self._check(action, func, tensors)
        if action.writes:
            self._check_written(func, args, kwargs)
        if self.blocks.stay and any(self.blocks.has_left(t, p) for t, p in action.updates):
            raise Diverged(func, "something outside of PyTorch looks at what it writes")
        i = action.instruction
        blocks, copies = self.blocks, self.copies
        if self._unfinished is not None:
            self._finish_late()
        if self._next < i:
            self._walk(i)
        if copies.missing[i] or copies.error is not None:
            copies.wait(i)
        self._next = i + 1
        points_at = blocks.points_at
        for place, t, p in action.uses:
            # Where it is so it stays so: a block goes when the last call that uses it was.
            if points_at[t] != p:
                with blocks.lock:
                    blocks.point(t, p, tensors[place].untyped_storage())
        if self.position == self.highest:
            # All that the plan ends before it has ended, and its copies were waited for.
            self.look(func)
        if action.kept:
            self._keep(action, func, args, kwargs)
        self.op_runs = True
        out = func(*args, **kwargs)
        made = self.growth.made[self.position]
        self.position += 1
        for t, p in action.updates:
            blocks.newest[t] = {p}
        left = blocks.left
        for t in action.touched:
            left[t] -= 1
        if action.births:
            self._take_births(action, tensors, out)
        elif made is not None:
            self.growth.take(out, made, tensors)
        if action.ends_late:
            # PyTorch lets go of it before the next op: then it is known who holds it.
            self._unfinished = i
        else:
            self._finish(i)
        return out

    def _keep(self, action, func, args, kwargs):
        kept = KeptCall(func, args, kwargs, action.op, self.blocks.number_of,
                        self.by_value[action.index], self._copies_of_small, self.blocks.stay,
                        self.blocks.device)
        self.kept_calls[action.index] = kept
        for identity in kept.by_reference():
            self._readers[identity] += 1
            self.read_later.add(identity)

    def _has_run_again(self, index):
        """Behind the last rerun of a call what it read may be written."""
        self._reruns_left[index] -= 1
        if self._reruns_left[index] > 0:
            return
        for identity in self.kept_calls[index].by_reference():
            self._readers[identity] -= 1
            if self._readers[identity] == 0:
                self.read_later.discard(identity)

    def _check(self, action, func, tensors):
        """Whether the call is on the tensors that the plan has for it."""
        if len(tensors) != action.tensors:
            raise Diverged(func, f"{len(tensors)} tensors instead of {action.tensors}")
        identity = self.blocks.identity
        for place, t, _ in action.uses:
            if identity.get(t) != tensors[place].untyped_storage()._cdata:
                raise Diverged(func, f"another tensor than {self.blocks.name(t)}")
        for place, shape in action.op.shapes:
            if tensors[place].shape != shape:
                raise Diverged(func, f"other sizes {tuple(tensors[place].shape)} instead of "
                                     f"{tuple(shape)}")
        for place in action.others:
            found = tensors[place].untyped_storage()._cdata
            if found in self.ours and all(found != identity[t] for _, t, _ in action.uses):
                raise Diverged(func, "another tensor")

    def end(self):
        """The rest of the schedule, behind the last call. Diverged where calls are missing."""
        if self.growth.spare < self._stays:
            raise self.growth.outgrown("the end", self._stays)
        if self.schedule.where_it_is_next(None, self.position) is None:
            raise Diverged("the end", "instead of "
                           f"{calls.name_of(self.schedule.call_at(self.position)[0])}")
        self._finish_late()
        self._walk(len(self.schedule.instructions))
        self.copies.end(self.blocks.lent_at_end())
        if self.blocks.stay and any(self.blocks.has_left(t, p)
                                    for t, p in self.plan.boundary.items()):
            raise Diverged("the end", "something outside of PyTorch looks at what moves")
        exports.tell(None)
        if self._ahead is not None:
            self._ahead.end()
        self.blocks.end()
        self.kept_calls.clear()
        self._copies_of_small.clear()

    # ---- walking

    def _walk(self, upto):
        while self._next < upto:
            i = self._next
            self._next = i + 1
            x = self.schedule.instructions[i]
            if x.is_copy:
                self.copies.start(i)
                if self._ahead is not None:
                    self._ahead.go_on(self.copies.done)
            elif self.schedule.silent[i]:
                self.copies.done[i] = True
            elif x.again:
                self.copies.wait(i)
                self.rerun(i)
                self._finish(i)
            elif self.program.recorded[x.op] < 0:
                self._finish(i)
            else:
                raise Diverged("too early", "the plan expects "
                               f"{self.program.json['ops'][x.op]['name']} first")

    def _finish_late(self):
        if self._unfinished is not None:
            i, self._unfinished = self._unfinished, None
            self._finish(i)

    def _finish(self, i):
        ends = self.schedule.ends[i]
        if not ends and not self.schedule.signals[i]:
            self.copies.done[i] = True
            return
        with self.blocks.lock:
            for e in ends:
                self._uses_left[e] -= 1
                if self._uses_left[e] == 0:
                    self.blocks.end_life(self.schedule.endings[e][0])
            self.copies.is_done(i)

    def _take_births(self, action, tensors, out):
        fresh = calls.fresh_storages(out, [t.untyped_storage()._cdata for t in tensors])
        device = self.blocks.device
        sizes = [storage.nbytes() if device.has(storage) else 0 for storage in fresh]
        if sizes != action.sizes:
            # It has run, so the step goes on without the plan from the next call on.
            self.copies.done[action.instruction] = True
            raise DivergedBehind(action.op.func, f"results of {sizes} bytes instead of "
                                 f"{action.sizes}", out)
        with self.blocks.lock:
            for born, storage in zip(action.births, fresh):
                if born is not None:
                    self.blocks.born(*born, storage)

    # ---- reruns and copies

    def rerun(self, i):
        x = self.schedule.instructions[i]
        index = self.program.recorded[x.op]
        place = {self.schedule.tensor_at(p): p for p, _ in x.operands}
        fresh = self.kept_calls[index].run(lambda t: self.blocks.block[place[t]])
        op = self.program.recording.ops[index]
        expected = [self.program.recording.storages[n].bytes for n in op.made]
        if [storage.nbytes() for storage in fresh] != expected:
            raise TidepoolError(f"{op.name} made other tensors when it ran again than before. Next: "
                                "fit(allow=('swap',)), and tell us of this op")
        with self.blocks.lock:
            for number, storage in zip(op.made, fresh):
                t = self.program.tensor_of.get(number)
                if t in self.schedule.managed:
                    self.blocks.block[place[t]] = storage
            for t, p in self.schedule.newest_after[i]:
                self.blocks.newest[t].add(p)
        self._has_run_again(index)
        self.reruns += 1

    def _is_small(self, x):
        """Whether it is a copy that costs less than to wake a thread."""
        if not x.is_copy or not self.blocks.region.is_memory:
            return False
        tensor = self.schedule.tensor_at(x.source)
        return self.program.tensors[tensor].bytes <= AT_ONCE

    def copy(self, i, stream=None):
        self.blocks.copy(self.schedule.instructions[i], stream)

    def stop_copies(self):
        """No copy runs any more; those that had not begun do not happen."""
        exports.tell(None)
        if self._ahead is not None:
            self._ahead.end()
        self.copies.stop()
        self._finish_late()
