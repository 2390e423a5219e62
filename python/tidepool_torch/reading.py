"""Other threads that read what is trained: between steps, which wait for them."""

import contextlib
import threading

from .errors import TidepoolError


class Reading:
    """Lets any number of threads read, or a step run."""

    def __init__(self):
        self._changed = threading.Condition()
        self._readers = 0
        self._steps_in = None  # the thread whose step runs

    @contextlib.contextmanager
    def reading(self):
        """Waits for the end of the step that runs. TidepoolError in the thread of that step."""
        with self._changed:
            if self._steps_in == threading.get_ident():
                raise TidepoolError("reading() inside of a step, which it would wait for. Next: "
                                    "behind it, or from another thread")
            self._changed.wait_for(lambda: self._steps_in is None)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def step(self):
        """Waits for those that read."""
        with self._changed:
            self._changed.wait_for(lambda: not self._readers)
            before, self._steps_in = self._steps_in, threading.get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._steps_in = before
                self._changed.notify_all()
