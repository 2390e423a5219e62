"""Runs the copies of a plan beside the calls, on one thread for each copy stream.

A copy is given to its thread when all that it waits for is done, so a thread waits for nothing but
work. The lock of Python goes from thread to thread only where it must: what is small is copied at
once where it can be, and nobody is woken who cannot go on.
"""

import collections
import contextlib
import queue
import threading
import time

# Up to so many bytes a copy takes less than to wake a thread for it.
AT_ONCE = 16 << 10


class _Stream:
    """`ahead` are copies that wait for something; `running` those that the thread has or had."""

    __slots__ = ("ahead", "running", "given")

    def __init__(self):
        self.ahead = collections.deque()
        self.running = 0
        self.given = queue.SimpleQueue()


class CopyThreads:
    """`done[i]`: whether instruction i of this step is; `missing[i]`: how many it still waits for.
    copy(i) carries a copy out and finish(i) says that it is done; `lock` is held for what more than
    one thread changes; `small[i]`: whether copy i may be carried out at once."""

    def __init__(self, schedule, streams, device, lock, small, copy, finish):
        self._device = device
        self._copy = copy
        self._finish = finish
        self._small = small
        self._lock = lock
        self._changed = threading.Condition(lock)
        self._streams = {stream: _Stream() for stream in streams}
        self._stream_of = [self._streams[x.stream] if x.is_copy else None
                           for x in schedule.instructions]
        self._needs = [len(waits) for waits in schedule.copy_waits]
        self._followers = [[] for _ in schedule.instructions]
        for i, waits in enumerate(schedule.copy_waits):
            for w in waits:
                self._followers[w].append(i)
        self.error = None
        self._stopping = False
        self._pending = 0  # copies that were started and are not done
        self._awaits = None  # whether what the thread of the calls waits for is there
        self.done = [True] * len(schedule.instructions)
        self.missing = list(self._needs)
        self.stalled = 0.0  # seconds that calls waited for copies
        for number, stream in self._streams.items():
            threading.Thread(target=self._run, args=(stream.given,), daemon=True,
                             name=f"tidepool-copies-{number}").start()

    def begin(self):
        with self._lock:
            self._stopping = False
            self.error = None
            self._pending = 0
            for stream in self._streams.values():
                stream.ahead.clear()
                stream.running = 0
            self.done = [False] * len(self.done)
            self.missing = list(self._needs)

    def start(self, i):
        """Copy i is the next one of its stream."""
        stream = self._stream_of[i]
        with self._lock:
            self._pending += 1
            at_once = (self._small[i] and not self.missing[i] and not stream.running
                       and not stream.ahead and self.error is None)
            if at_once:
                stream.running = 1
            else:
                stream.ahead.append(i)
                self._give(stream)
        if at_once:
            self._carry_out(i)

    def is_done(self, i):
        """To be called with the lock held, where another thread may wait for it."""
        self.done[i] = True
        stream = self._stream_of[i]
        if stream is not None:
            stream.running -= 1
            self._pending -= 1
        for follower in self._followers[i]:
            self.missing[follower] -= 1
            if not self.missing[follower] and self._stream_of[follower] is not None:
                self._give(self._stream_of[follower])
        if self._awaits is not None and self._awaits():
            self._changed.notify_all()

    def on(self, stream):
        """Enters a block whose copies this thread carries out."""
        return contextlib.nullcontext()

    def fresh_for(self, p, size, stream):
        """Returns bytes for a copy to fill."""
        return self._device.fresh(size)

    def retire(self, p, block):
        """The block of a placement is no longer needed: no copy that uses it is left."""

    def settle(self, p):
        """The same for a block that becomes PyTorch's."""

    def wait(self, i):
        """Until the copies are done that instruction i, a call, needs. What failed in one is raised
        here."""
        if self.missing[i]:
            start = time.perf_counter()
            self._wait_until(lambda: not self.missing[i])
            self.stalled += time.perf_counter() - start
        self._raise_error()

    def end(self, placements):
        """Waits for all copies, behind the last call of a step."""
        self._wait_until(lambda: not self._pending)
        self._raise_error()

    def in_limbo(self):
        """Bytes of blocks that nobody but copies uses."""
        return 0

    def stop(self):
        """No copy runs any more; those that had not begun do not happen."""
        with self._lock:
            self._stopping = True
            for stream in self._streams.values():
                stream.ahead.clear()
        for stream in self._streams.values():
            passed = threading.Event()
            stream.given.put(passed)
            passed.wait()

    def close(self):
        for stream in self._streams.values():
            stream.given.put(None)

    def _wait_until(self, is_there):
        with self._changed:
            self._awaits = is_there
            self._changed.wait_for(lambda: self.error is not None or is_there())
            self._awaits = None

    def _raise_error(self):
        if self.error is not None:
            raise self.error

    def _give(self, stream):
        """Copies run in the order of their stream: one that could run waits for those before it."""
        while stream.ahead and not self.missing[stream.ahead[0]]:
            stream.running += 1
            stream.given.put(stream.ahead.popleft())

    def _run(self, given):
        while True:
            i = given.get()
            if isinstance(i, threading.Event):
                i.set()
            elif i is None:
                return
            elif not self._stopping and self.error is None:
                self._carry_out(i)

    def _carry_out(self, i):
        try:
            self._copy(i)
            self._finish(i)
        except BaseException as error:  # pylint: disable=broad-except
            with self._changed:
                self.error = error
                self._changed.notify_all()
