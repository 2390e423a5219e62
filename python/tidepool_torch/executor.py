"""Runs one plan: walks its steady schedule beside the calls that PyTorch makes.

A placement is a block that the runtime owns, a managed storage a pointer to one of them. Copy
threads, one for each copy stream, fill and read blocks; the only thing they do to a storage is to
leave it without bytes when its block goes. No strong reference to a storage of the step is held.
"""

import contextlib
import queue
import threading
import time

import torch

from . import calls, primitives
from .away import not_here
from .errors import TidepoolError
from .primitives import StorageWeakRef
from .reruns import KeptCall
from .schedule import WRITES_OTHERS


# Bytes that a call may make of which the plan knows nothing.
_BESIDE = 4096


class Diverged(Exception):
    """A call of PyTorch's is not the one that the plan expects."""


class _Stopped(Exception):
    """A copy thread is asked to give up what it waits for."""


@contextlib.contextmanager
def as_a_kernel_call():
    """Ops called here run as they do below the dispatcher: without autograd and autocast."""
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        yield


class Executor:
    """`region` has the plan's host bytes. One step: begin(), run() for each call, end(); or
    land() where it ends early. Between steps bytes are where the plan's boundary says, until
    land()."""

    def __init__(self, schedule, kept, region):
        self.schedule = schedule
        self.program = schedule.program
        self.plan = schedule.plan
        self.region = region
        self.calls = [*schedule.calls, (None, None)]  # what lies behind the last is no call
        self.by_value = kept.by_value
        self.moved_out = self.moved_in = self.reruns = 0
        self.stalled = 0.0
        self.block = {}  # placement on the device -> the storage that owns its bytes
        self.points_at = {}  # tensor -> the placement that PyTorch's storage looks at; None: away
        self.reference = {}  # tensor -> PyTorch's storage
        self.ours = set()  # `_cdata` of these
        self.newest = {}  # tensor -> the placements that have its newest value
        self.mine = set()  # tensors whose storages are pointers in this step
        self.kept_calls = {}
        self.done = [True] * len(self.schedule.instructions)
        self.entered = False
        self.position = 0
        self._next = 0
        self._unfinished = None
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._error = None
        self._stopping = False
        self._queues = {}
        for stream in self.plan.copy_streams:
            self._queues[stream] = queue.SimpleQueue()
            threading.Thread(target=self._copy_thread, args=(self._queues[stream],), daemon=True,
                             name=f"tidepool-copies-{stream}").start()

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
                self._say_away(t, storage)
            else:
                self.region.write(storage.data_ptr(), storage.nbytes(), offset)
                self.moved_out += storage.nbytes()
                self._say_away(t, storage)
            self._take(t, p, storage, None)
        for t, p, storage in bound:
            if self._on_device(p):
                if storage in away:
                    away.back(storage)
                self.block[p] = primitives.take_bytes(storage)
                self._take(t, p, storage, p)
        self.mine = set(self.schedule.managed)
        self.entered = True

    def holds(self, storages):
        """Whether these are the storages that enter() took."""
        return all(self.reference[t].cdata == storages[self.program.tensors[t].name]._cdata
                   for t in self.plan.boundary if t in self.schedule.managed)

    def copy_of(self, storage):
        """A storage with the bytes of one that is away between steps, or None."""
        for t, reference in self.reference.items():
            if reference.cdata == storage._cdata and self.points_at.get(t) is None:
                copy = torch.UntypedStorage(storage.nbytes())
                offset = self.plan.placements[self.plan.boundary[t]].offset
                self.region.read(copy.data_ptr(), storage.nbytes(), offset)
                return copy
        return None

    def _take(self, t, p, storage, points_at):
        self.reference[t] = reference = StorageWeakRef(storage)
        self.ours.add(reference.cdata)
        self.newest[t] = {p}
        self.points_at[t] = points_at

    # ---- a step

    def begin(self):
        self.position = self._next = 0
        self._unfinished = None
        self._stopping = False
        self.mine = set(self.schedule.managed)
        self.left = dict(self.schedule.accesses_left)
        self._uses_left = [count for _, count in self.schedule.endings]
        with self._lock:
            self._error = None
            self.done = [False] * len(self.schedule.instructions)

    def run(self, func, args, kwargs):
        """One call of PyTorch's. Diverged, with nothing of the call done, where it is another."""
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
        if action is WRITES_OTHERS:
            if self._ours_among(calls.written(func, args, kwargs)):
                raise Diverged(f"{func} on another tensor")
            action = None
        if action is None:
            self.position += 1
            return func(*args, **kwargs)
        return self._act(action, func, args, kwargs)

    def _beside_the_plan(self, func, args, kwargs, tensors, expected):
        """A call that the plan does not have, of those that change nothing for it: callbacks that
        log, every so many steps."""
        if not calls.is_view(func):
            if calls.writes(func) or self._ours_among(tensors):
                raise Diverged(f"{func} instead of {expected}")
        out = func(*args, **kwargs)
        known = [t.untyped_storage()._cdata for t in tensors]
        if sum(s.nbytes() for s in calls.fresh_storages(out, known)) > _BESIDE:
            raise DivergedBehind(f"{func} instead of {expected}", out)
        return out

    def _ours_among(self, tensors):
        """Whether one of them is over a storage that the plan moves."""
        return any(t.untyped_storage()._cdata in self.ours for t in tensors)

    def _act(self, action, func, args, kwargs):
        tensors = calls.tensors_in(args, kwargs)
        if len(tensors) != len(action.op.inputs):
            raise Diverged(f"{func} with {len(tensors)} tensors instead of "
                           f"{len(action.op.inputs)}")
        for place, t, _ in action.uses:
            reference = self.reference.get(t)
            if reference is None or reference.cdata != tensors[place].untyped_storage()._cdata:
                raise Diverged(f"{func} with another tensor than {self._name(t)}")
        for place, shape in action.op.shapes:
            if tensors[place].shape != shape:
                raise Diverged(f"{func} on a tensor of {tuple(tensors[place].shape)} instead of "
                               f"{tuple(shape)}")
        if action.writes:
            expected = {self.reference[t].cdata for _, t, _ in action.uses}
            found = {t.untyped_storage()._cdata for t in tensors}
            if any(c in self.ours and c not in expected for c in found):
                raise Diverged(f"{func} on another tensor")
        i = action.instruction
        if self._unfinished is not None:
            self._finish_late()
        if self._next < i:
            self._walk(i)
        self._wait(i)
        self._next = i + 1
        if action.uses:
            with self._lock:
                for place, t, p in action.uses:
                    if self.points_at[t] != p:
                        self._point(t, p, tensors[place].untyped_storage())
        if action.kept:
            self.kept_calls[action.index] = KeptCall(
                func, args, kwargs, action.op, self._number_of, self.by_value[action.index])
        out = func(*args, **kwargs)
        self.position += 1
        if action.updates:
            with self._lock:
                for t, p in action.updates:
                    self.newest[t] = {p}
        for t in action.touched:
            self.left[t] -= 1
        if action.births:
            self._take_births(action, tensors, out)
        if self._ends_something_last(i):
            # PyTorch lets go of it before the next call: then it is known who holds it.
            self._unfinished = i
        else:
            self._finish(i)
        return out

    def end(self):
        """The rest of the schedule, behind the last call. Diverged where calls are missing."""
        if self.schedule.where_it_is_next(None, self.position) is None:
            raise Diverged(f"the end instead of {self.schedule.call_at(self.position)[0]}")
        self._finish_late()
        self._walk(len(self.schedule.instructions))
        with self._changed:
            self._changed.wait_for(lambda: self._error or all(self.done))
        self._raise_error()
        for t, p in self.plan.boundary.items():
            if t in self.schedule.managed and self._on_device(p) and self.points_at[t] != p:
                self._point(t, p, primitives.living(self.reference[t]))
        self._forget_step()

    def _forget_step(self):
        self.kept_calls.clear()
        for t in [t for t in self.reference if t not in self.plan.boundary]:
            del self.reference[t]
            self.points_at.pop(t, None)
            self.newest.pop(t, None)
        self.ours = {reference.cdata for reference in self.reference.values()}

    # ---- walking

    def _walk(self, upto):
        while self._next < upto:
            i = self._next
            self._next = i + 1
            x = self.schedule.instructions[i]
            if x.is_copy:
                self._queues[x.stream].put(i)
            elif self.schedule.silent[i]:
                self.done[i] = True
            elif x.again:
                self._wait(i)
                self.rerun(i)
                self._finish(i)
            elif self.program.recorded[x.op] < 0:
                self._finish(i)
            else:
                raise Diverged(f"a call before {self.program.json['ops'][x.op]['name']}, "
                               "which the plan expects first")

    def _wait(self, i):
        waits = self.schedule.copy_waits[i]
        if waits and not all(self.done[w] for w in waits):
            start = time.perf_counter()
            with self._changed:
                self._changed.wait_for(
                    lambda: self._error or all(self.done[w] for w in waits))
            self.stalled += time.perf_counter() - start
        if self._error is not None:
            self._raise_error()

    def _raise_error(self):
        if self._error is not None:
            raise self._error

    def _ends_something_last(self, i):
        for e in self.schedule.ends[i]:
            t = self.schedule.tensor_at(self.schedule.endings[e][0])
            if not self.left.get(t) and t not in self.plan.boundary:
                return True
        return False

    def _finish_late(self):
        if self._unfinished is not None:
            i, self._unfinished = self._unfinished, None
            self._finish(i)

    def _finish(self, i):
        ends = self.schedule.ends[i]
        if not ends and i not in self.schedule.signals and not self.schedule.instructions[i].is_copy:
            self.done[i] = True
            return
        with self._lock:
            for e in ends:
                self._uses_left[e] -= 1
                if self._uses_left[e] == 0:
                    self._end_life(self.schedule.endings[e][0])
            self.done[i] = True
            self._changed.notify_all()

    def _end_life(self, p):
        t = self.schedule.tensor_at(p)
        places = self.newest.get(t)
        if places is not None:
            places.discard(p)
        if not self._on_device(p):
            return
        block = self.block.pop(p)
        if self.points_at.get(t) != p:
            return
        self.points_at[t] = None
        storage = primitives.living(self.reference.get(t))
        if storage is None:
            return
        if self.left.get(t) or t in self.plan.boundary:
            self._say_away(t, storage)
        else:
            # PyTorch holds it longer than it uses it: the bytes are the storage's own again.
            storage._swap_data_ptr_(block)
            self.mine.discard(t)

    # ---- storages and blocks

    def _on_device(self, p):
        return self.plan.placements[p].on_device

    def _name(self, t):
        return self.program.tensors[t].name

    def _number_of(self, storage_number):
        t = self.program.tensor_of.get(storage_number)
        return t if t in self.schedule.managed else None

    def _say_away(self, t, storage):
        primitives.set_away(storage, not_here(self._name(t)))

    def _point(self, t, p, storage):
        block = self.block[p]
        primitives.set_bytes(storage, primitives.alias(block.data_ptr(), block.nbytes()),
                             self.points_at[t] is None)
        self.points_at[t] = p

    def _take_births(self, action, tensors, out):
        fresh = calls.fresh_storages(out, [t.untyped_storage()._cdata for t in tensors])
        sizes = [storage.nbytes() for storage in fresh]
        if sizes != action.sizes:
            # It has run, so the step goes on without the plan from the next call on.
            self.done[action.instruction] = True
            raise DivergedBehind(f"{action.op.name}: other sizes {sizes} instead of "
                                 f"{action.sizes}", out)
        with self._lock:
            for born, storage in zip(action.births, fresh):
                if born is not None:
                    t, p = born
                    self.block[p] = primitives.take_bytes(storage)
                    self._take(t, p, storage, p)

    # ---- reruns and copies

    def rerun(self, i):
        x = self.schedule.instructions[i]
        index = self.program.recorded[x.op]
        place = {self.schedule.tensor_at(p): p for p, _ in x.operands}
        fresh = self.kept_calls[index].run(lambda t: self.block[place[t]])
        op = self.program.recording.ops[index]
        expected = [self.program.recording.storages[n].bytes for n in op.made]
        if [storage.nbytes() for storage in fresh] != expected:
            raise TidepoolError(f"{op.name} made other tensors when it ran again than before. Next: "
                                "fit(allow=('swap',)), and tell us of this op")
        with self._lock:
            for number, storage in zip(op.made, fresh):
                t = self.program.tensor_of.get(number)
                if t in self.schedule.managed:
                    self.block[place[t]] = storage
            for t, p in self.schedule.newest_after[i]:
                self.newest[t].add(p)
        self.reruns += 1

    def _copy_thread(self, waiting):
        while True:
            i = waiting.get()
            if isinstance(i, threading.Event):
                i.set()
                continue
            if i is None:
                return
            try:
                self._wait_as_copy(i)
                self.copy(i)
                self._finish(i)
            except _Stopped:
                pass
            except BaseException as error:  # pylint: disable=broad-except
                with self._changed:
                    self._error = error
                    self._changed.notify_all()

    def _wait_as_copy(self, i):
        waits = self.schedule.copy_waits[i]
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or self._error or all(self.done[w] for w in waits))
            if self._stopping or self._error:
                raise _Stopped

    def copy(self, i):
        x = self.schedule.instructions[i]
        source, target = self.plan.placements[x.source], self.plan.placements[x.target]
        size = self.program.tensors[source.tensor].bytes
        if source.on_device:
            with self._lock:
                block = self.block[x.source]
            self.region.write(block.data_ptr(), size, target.offset)
            self.moved_out += size
        else:
            block = torch.UntypedStorage(size)
            self.region.read(block.data_ptr(), size, source.offset)
            self.moved_in += size
            with self._lock:
                self.block[x.target] = block
        del block
        with self._lock:
            places = self.newest.get(source.tensor)
            if places is not None and x.source in places:
                places.add(x.target)

    def stop_copies(self):
        """No copy runs any more; those that had not begun do not happen."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for waiting in self._queues.values():
            passed = threading.Event()
            waiting.put(passed)
            passed.wait()
        self._finish_late()

    def close(self):
        for waiting in self._queues.values():
            waiting.put(None)
        self._queues.clear()
        self.region.release()


class DivergedBehind(Diverged):
    """The call ran, with this result."""

    def __init__(self, message, out):
        super().__init__(message)
        self.out = out
