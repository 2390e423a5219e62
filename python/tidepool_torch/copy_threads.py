"""Threads that run the copies of a plan beside the calls, one for each copy stream."""

import queue
import threading
import time


class _Stopped(Exception):
    """A copy thread is asked to give up what it waits for."""


class CopyThreads:
    """`done[i]`: whether instruction i of this step is. copy(i) carries a copy out and finish(i)
    says that it is done; `lock` is held for what more than one thread changes."""

    def __init__(self, schedule, streams, lock, copy, finish):
        self._waits = schedule.copy_waits
        self._copy = copy
        self._finish = finish
        self._changed = threading.Condition(lock)
        self._error = None
        self._stopping = False
        self.done = [True] * len(schedule.instructions)
        self.stalled = 0.0  # seconds that calls waited for copies
        self._queues = {stream: queue.SimpleQueue() for stream in streams}
        for stream, waiting in self._queues.items():
            threading.Thread(target=self._run, args=(waiting,), daemon=True,
                             name=f"tidepool-copies-{stream}").start()

    def begin(self):
        with self._changed:
            self._stopping = False
            self._error = None
            self.done = [False] * len(self.done)

    def start(self, stream, i):
        self._queues[stream].put(i)

    def is_done(self, i):
        """To be called with the lock held, where somebody may wait for it."""
        self.done[i] = True
        self._changed.notify_all()

    def wait(self, i):
        """Until the copies are done that instruction i, a call, needs. What failed in one is raised
        here."""
        waits = self._waits[i]
        if waits and not self._all_done(waits):
            start = time.perf_counter()
            with self._changed:
                self._changed.wait_for(lambda: self._error or self._all_done(waits))
            self.stalled += time.perf_counter() - start
        self._raise_error()

    def wait_for_all(self):
        with self._changed:
            self._changed.wait_for(lambda: self._error or all(self.done))
        self._raise_error()

    def stop(self):
        """No copy runs any more; those that had not begun do not happen."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for waiting in self._queues.values():
            passed = threading.Event()
            waiting.put(passed)
            passed.wait()

    def close(self):
        for waiting in self._queues.values():
            waiting.put(None)
        self._queues.clear()

    def _all_done(self, instructions):
        return all(self.done[w] for w in instructions)

    def _raise_error(self):
        if self._error is not None:
            raise self._error

    def _run(self, waiting):
        while True:
            i = waiting.get()
            if isinstance(i, threading.Event):
                i.set()
                continue
            if i is None:
                return
            try:
                self._wait_as_copy(i)
                self._copy(i)
                self._finish(i)
            except _Stopped:
                pass
            except BaseException as error:  # pylint: disable=broad-except
                with self._changed:
                    self._error = error
                    self._changed.notify_all()

    def _wait_as_copy(self, i):
        waits = self._waits[i]
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or self._error or self._all_done(waits))
            if self._stopping or self._error:
                raise _Stopped
