"""What the callbacks have in common: steps of a Budget whose two ends are two calls."""

import contextlib
import functools

from ..user.api import fit


class Steps:
    """At most one step is open. What has nothing to do does nothing: calls come in pairs only while
    nothing goes wrong."""

    def __init__(self, options):
        self.budget = None  # the last one also after its end, for its report
        self._options = options
        self._serves = False
        self._open = None

    @property
    def is_open(self):
        return self._open is not None

    def fit(self, model, optimizers):
        self.close()
        self.budget = fit(model, optimizers, **self._options)
        self._serves = True

    def begin(self):
        if self._serves and self._open is None:
            step = contextlib.ExitStack()
            step.enter_context(self.budget.step())
            self._open = step

    def end(self):
        step, self._open = self._open, None
        if step is not None:
            try:
                step.close()
            except BaseException:
                self.close()
                raise

    def leave(self, error):
        """The open step, if there is one, ends as one that raised `error`."""
        step, self._open = self._open, None
        if step is not None:
            step.__exit__(type(error), error, error.__traceback__)

    def close(self):
        """Everything is on the device again and stays there."""
        try:
            self.end()
        finally:
            if self._serves:
                self._serves = False
                self.budget.close()


@contextlib.contextmanager
def errors_told(owner, name, tell):
    """While it is entered, tell(error) is called before an error leaves that method."""
    method = getattr(owner, name, None)
    before = getattr(owner, "__dict__", {}).get(name)
    if method is None:
        yield
        return

    @functools.wraps(method)
    def watched(*args, **kwargs):
        try:
            return method(*args, **kwargs)
        except BaseException as error:
            tell(error)
            raise

    setattr(owner, name, watched)
    yield
    if vars(owner).get(name) is watched:
        delattr(owner, name)
        if before is not None:
            setattr(owner, name, before)
