"""How the ops of a step arrive, and what Ctrl-C may interrupt."""

import signal
import threading

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..base.compat import OUT_OF_MEMORY
from ..base.list_ops import groups_of, joined, lists_of
from ..base.refusals import explained, of_another_stream
from ..base.wrappers import is_wrapper


class StepMode(TorchDispatchMode):
    """Sees each op of a step and gives it to `handle`(func, args, kwargs), but for those which
    `walk`, an executor in the middle of a step or None, expects and lets pass. One over lists of
    tensors is several calls, each of which is an op of the step."""

    def __init__(self, gate):
        super().__init__()
        self._gate = gate
        # Autograd has a thread for each device of a graph, and each of them has this mode.
        self._one_at_a_time = threading.RLock()
        self.handle = None
        self.walk = None
        self.stream = None  # (what tells the current one, that of the step), on a device with streams

    def _check_stream(self):
        current, of_step = self.stream
        if current() != of_step:
            raise of_another_stream()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if types and is_wrapper(types):
            return NotImplemented  # so that the ops on what is inside arrive here
        walk = self.walk
        if walk is not None:
            expected, run, looks, written, made = walk.passing[walk.position]
            if (expected is func and walk.growth.spare >= 0
                    and (not looks or walk.may_pass(args, written))):
                # Most calls: nothing of theirs is the plan's, and nothing can be left half-done.
                walk.position += 1
                try:
                    out = run(*args, **kwargs) if kwargs else run(*args)
                except OUT_OF_MEMORY:
                    if written >= 0:
                        raise  # it may have done a part
                    walk.position -= 1
                else:
                    if made is not None:
                        walk.growth.take(out, made)
                    return out
        groups = groups_of(func, args, kwargs or {}) if lists_of(func) else None
        gate = self._gate
        gate.closed = True
        try:
            with self._one_at_a_time:
                if self.stream is not None:
                    self._check_stream()
                if groups is None:
                    return self.handle(func, args, kwargs or {})
                return joined([self.handle(func, *group) for group in groups])
        except NotImplementedError as error:
            clearer = explained(error)
            if clearer is None:
                raise
            raise clearer from error
        finally:
            gate.closed = False
            if gate.waiting is not None:
                gate.let_through()


def call_it_as_it_is(mode):
    """PyTorch wraps the method of a mode in two functions of torch._dynamo's that keep the compiler
    out of it, for a sixth of what a mode costs. To tell the compiler once does the same."""
    try:
        plain = mode.__torch_dispatch__.__wrapped__
        eval_frame = torch._C._dynamo.eval_frame
        skip = eval_frame._FrameAction.SKIP
        eval_frame.set_code_exec_strategy(plain.__code__, eval_frame._FrameExecStrategy(skip, skip))
    except (AttributeError, TypeError):
        return  # a torch that has none of this
    mode.__torch_dispatch__ = plain


call_it_as_it_is(StepMode)


class InterruptGate:
    """Ctrl-C during a step waits for the end of the op that runs: bookkeeping is whole then."""

    def __init__(self):
        self.closed = False
        self.waiting = None
        self._before = None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if callable(self._before):
                signal.signal(signal.SIGINT, self._came)
            else:
                self._before = None
        return self

    def __exit__(self, *error):
        if self._before is not None and signal.getsignal(signal.SIGINT) == self._came:
            signal.signal(signal.SIGINT, self._before)
        self.closed = False
        if self.waiting is not None:
            self.let_through()

    def _came(self, number, frame):
        if self.closed and self.waiting is None:
            self.waiting = (number, frame)
        else:
            self._before(number, frame)

    def let_through(self):
        waiting, self.waiting = self.waiting, None
        self._before(*waiting)
