"""Ops of threads beside the step's: while one runs on a storage, its bytes stay where they are.

A mode of PyTorch's sees the ops of one thread. So each thread gets one as it starts.
"""

import contextlib
import functools
import threading
import weakref

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode, _get_current_dispatch_mode, _pop_mode, _push_mode)

from ..base import calls, device, primitives, running_ops
from ..base.wrappers import is_wrapper
from .away import not_here
from .step_mode import call_it_as_it_is

_here = threading.local()
_budgets = weakref.WeakSet()  # those that move bytes: the Reading of each


class Onlooker(TorchDispatchMode):
    """The mode of a thread. Parts of an op that is not PyTorch's own run unseen: such a one may wait for
    what a step holds. Never entered with `with`, which turns the compiler off in all threads."""

    @classmethod
    def ignore_compile_internals(cls):
        """Asked by torch.compile: what it has compiled runs as without this."""
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if types and is_wrapper(types):
            return NotImplemented  # so that the ops on what is inside arrive here
        kwargs = kwargs or {}
        if not _budgets or func.namespace != "aten":
            return func(*args, **kwargs)
        storages = _storages_of(calls.tensors_in(args, kwargs))
        with running_ops.on(storages):
            if primitives.SWAPS_ONLY:
                _check(storages)
            return func(*args, **kwargs)


call_it_as_it_is(Onlooker)


def _check(storages):
    """RuntimeError by name where one is away."""
    for storage in storages:
        if not primitives.has_bytes(storage):
            storage.data_ptr()  # says the name, where this form has it
            raise RuntimeError(not_here("a tensor"))


# What reads bytes without an op: torch.save(), pickles, lists.
_READERS = ((torch._C.PyTorchFileWriter, "write_record"), (torch.UntypedStorage, "_write_file"),
            (torch.UntypedStorage, "tolist"), (torch.Tensor, "tolist"))


def _see(owner, name):
    read = getattr(owner, name, None)
    if read is None:
        return

    @functools.wraps(read)
    def seen(*args, **kwargs):
        if not _budgets or not hasattr(_here, "mode"):
            return read(*args, **kwargs)
        storages = _storages_of(args)
        with running_ops.on(storages):
            _check(storages)  # before a writer of files ends half-way
            return read(*args, **kwargs)

    setattr(owner, name, seen)


def _save_between_steps():
    """Form B: a writer of files is given addresses, and what is away has none. Saves wait for the step
    that runs, and what is away raises."""
    save, tag = torch.serialization.save, torch.serialization.location_tag

    @functools.wraps(save)
    def saves(*args, **kwargs):
        with contextlib.ExitStack() as none_runs:
            for reading in list(_budgets):
                none_runs.enter_context(reading.beside())
            return save(*args, **kwargs)

    @functools.wraps(tag)
    def checked(storage):  # what is saved passes here
        _check(_storages_of([storage]))
        return tag(storage)

    torch.save = torch.serialization.save = saves
    torch.serialization.location_tag = checked


def _storages_of(values):
    return [v if isinstance(v, torch.UntypedStorage) else primitives.storage_of(v) for v in values
            if isinstance(v, torch.UntypedStorage)
            or (isinstance(v, torch.Tensor) and calls.is_plain(v) and device.serves(v.device))]


def watch():
    """Threads that `threading` starts from now on are seen."""
    if primitives.SWAPS_ONLY:
        _save_between_steps()
    for owner, name in _READERS:
        _see(owner, name)
    begin = threading.Thread._bootstrap_inner

    @functools.wraps(begin)
    def seen(thread):
        _here.mode = Onlooker()
        _push_mode(_here.mode)
        begin(thread)

    threading.Thread._bootstrap_inner = seen


def bytes_move(reading):
    """From now on, as long as somebody holds the Reading: until then threads' ops cost them no look."""
    _budgets.add(reading)


@contextlib.contextmanager
def step():
    """The ops of this thread are a step's, which sees them itself."""
    mode = getattr(_here, "mode", None)
    if mode is None or _get_current_dispatch_mode() is not mode:
        yield
        return
    _pop_mode()
    try:
        yield
    finally:
        _push_mode(mode)
