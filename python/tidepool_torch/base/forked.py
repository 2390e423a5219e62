"""Runs a function in a copy of this process, which is thrown away behind it: whatever the function
does to objects of Python stays there. What it does to files, sockets and shared memory does not."""

import gc
import io
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import time
import warnings

import torch
from torch.utils.data import dataloader

from .errors import TidepoolError

_BEAT = 1.0  # seconds between signs of life, at least
_MOST_SILENCE = 60.0  # seconds; the copy of a lock that another thread holds is never given back
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


class CopyFailed(TidepoolError):
    """The copy could not be made, or gave no answer."""


def in_copy(work):
    """What work(beat) returns there, which is pickled; it calls beat() now and then. CopyFailed."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    pid = None
    _flush()
    # A KeyboardInterrupt inside of the copy would go on up in the user's program there.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        pid = _fork()
        if pid == 0:
            _be_the_copy(work, writer, mask)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        writer.close()
        return _answer(reader)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        reader.close()
        writer.close()
        if pid is not None:
            _end(pid)


def _fork():
    try:
        with warnings.catch_warnings():
            # Of other threads' locks, for which there is _MOST_SILENCE.
            warnings.simplefilter("ignore")
            return os.fork()
    except OSError as error:
        raise CopyFailed(f"no copy of this process can be made: {error.strerror}") from None


def _answer(reader):
    try:
        while reader.poll(_MOST_SILENCE):
            data = reader.recv_bytes()
            if data:
                return pickle.loads(data)
    except (EOFError, OSError):
        raise CopyFailed("the copy of this process that was to find out ended without a "
                         "word") from None
    except AttributeError as error:
        raise CopyFailed(f"the step defines an op of its own: {error}") from None
    raise CopyFailed(f"the copy of this process that was to find out did nothing for "
                     f"{_MOST_SILENCE:g} seconds")


def _end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass  # a handler of the user's was faster


def _flush():
    """What is in a buffer now would be written twice."""
    for file in (sys.stdout, sys.stderr):
        try:
            file.flush()
        except (AttributeError, OSError, ValueError):
            pass  # there is none, or it is closed


# ---- in the copy


def _be_the_copy(work, writer, mask):
    """Does not return, and runs nothing that is to run at the end of a program."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        # No finalizer of what is there already, and pages stay shared.
        gc.freeze()
        _be_silent()
        torch.set_num_threads(1)  # threads of OpenMP are not copied
        _keep_from_loaders()
        writer.send_bytes(_pickled(work(_Beat(writer))))
    finally:
        os._exit(0)


def _be_silent():
    logging.disable(logging.CRITICAL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")


def _keep_from_loaders():
    """A batch that is taken here would be missing in the process itself, which would wait for it."""
    def refuse(*_, **__):
        raise TidepoolError("it takes a batch from a DataLoader with workers. Take the batch before "
                            "the step")

    loader = dataloader._MultiProcessingDataLoaderIter
    loader.__init__ = loader._reset = loader._next_data = refuse


class _Beat:
    def __init__(self, writer):
        self._writer = writer
        self._last = time.monotonic()

    def __call__(self):
        now = time.monotonic()
        if now - self._last > _BEAT:
            self._last = now
            self._writer.send_bytes(b"")


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj):
        if isinstance(obj, torch._ops.OpOverload):
            namespace, name = obj._schema.name.split("::")
            return _op, (namespace, name, obj._overloadname)
        return NotImplemented


def _op(namespace, name, overload):
    return getattr(getattr(getattr(torch.ops, namespace), name), overload)


def _pickled(value):
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()
