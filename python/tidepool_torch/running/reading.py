"""Other threads that read what is trained: between steps, which wait for them."""

import collections
import contextlib
import threading

from ..base.errors import TidepoolError


class Reading:
    """Lets any number of threads read, or a step run, in the order in which they came."""

    def __init__(self):
        self._changed = threading.Condition()
        self._waiting = collections.deque()
        self._readers = []  # their threads
        self._steps_in = None  # the thread whose step runs

    def _wait(self, may_begin):
        """To be called with the lock held."""
        mine = object()
        self._waiting.append(mine)
        try:
            self._changed.wait_for(lambda: self._waiting[0] is mine and may_begin())
        finally:
            self._waiting.remove(mine)
            self._changed.notify_all()

    @contextlib.contextmanager
    def reading(self):
        """Waits for the end of the step that runs. TidepoolError in the thread of that step."""
        me = threading.get_ident()
        with self._changed:
            if self._steps_in == me:
                raise TidepoolError("reading() inside of a step, which it would wait for. Next: "
                                    "behind it, or from another thread")
            self._wait(lambda: self._steps_in is None)
            self._readers.append(me)
        try:
            yield
        finally:
            with self._changed:
                self._readers.remove(me)
                self._changed.notify_all()

    @contextlib.contextmanager
    def beside(self):
        """The same in any thread: that of a step, and one that reads, need not wait."""
        me = threading.get_ident()
        if self._steps_in == me or me in self._readers:
            yield
            return
        with self.reading():
            yield

    @contextlib.contextmanager
    def step(self):
        """Waits for those that read. TidepoolError in a thread that does."""
        me = threading.get_ident()
        with self._changed:
            if me in self._readers:
                raise TidepoolError("a step inside of reading(), for whose end it would wait. Next: "
                                    "behind it")
            before = self._steps_in
            if before is None:
                self._wait(lambda: not self._readers)
            self._steps_in = me
        try:
            yield
        finally:
            with self._changed:
                self._steps_in = before
                self._changed.notify_all()
