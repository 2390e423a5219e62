"""Copies, keeps, counts and looks at bytes of tensors, where they are.

A storage knows its device, so no device is the current one. Nothing else asks of which kind one is, and
only what takes bytes out of storages (swapping, resizing) follows addresses too.
"""

import contextlib
import copyreg
import ctypes
import time
import zlib

import torch

from . import cuda, memory, switches
from .unseen import unseen


class _ThreadTime:
    """Nanoseconds that this thread works until stop()."""

    def __init__(self):
        self._start = time.thread_time_ns()

    def stop(self):
        return time.thread_time_ns() - self._start


class _WallTime:
    """Seconds until stop()."""

    is_known = True

    def __init__(self):
        self._start = time.perf_counter()
        self._seconds = None

    def stop(self):
        self._seconds = time.perf_counter() - self._start
        return self

    def __float__(self):
        return self._seconds


class HostDevice:
    """PyTorch on the CPU: a copy is done when the call that asks for it returns."""

    device = torch.device("cpu")
    has_streams = False
    counts = memory.counts
    block_bytes = staticmethod(memory.block_bytes)
    time_of_op = _ThreadTime
    time_of_step = _WallTime
    alignment = 4096  # of offsets in host memory
    prepare = staticmethod(memory.give_back_at_once)
    available = None  # whoever asks looks at the limits of the process

    def counted(self, size):
        """Returns what its counts of live bytes have for a storage of so many."""
        return size

    def in_holes(self, budget):
        """Returns bytes of a budget that its allocator may keep between blocks."""
        return 0

    def kept_by_driver(self):
        """Returns bytes of it that are nobody's in this process."""
        return 0

    def holes(self):
        """Returns how many it kept at most, since its counts began."""
        return 0

    def retries(self):
        """Returns how often it had no room and let go of what it kept, in all."""
        return 0

    def capped(self, most):
        """Enters a block in which the allocator refuses more than so many bytes, where it can."""
        return contextlib.nullcontext()

    def uncapped(self):
        """Enters a block without that, in one with it."""
        return contextlib.nullcontext()

    switches = staticmethod(switches.of_host)

    def repeats(self, op):
        """Says whether a second run of an op on the same values has the same bits."""
        return True

    def has(self, tensor_or_storage):
        """Says whether it is here."""
        return tensor_or_storage.device == self.device

    def fresh(self, size):
        """Makes a storage of so many bytes, which are not set."""
        return torch.UntypedStorage(size)

    def out(self, storage, region, offset=0):
        """Copies all bytes of a storage to an offset of a region of the host tier."""
        region.write(storage.data_ptr(), storage.nbytes(), offset)

    def back(self, storage, region, offset=0):
        """Copies all bytes of a storage from there."""
        region.read(storage.data_ptr(), storage.nbytes(), offset)

    def wait(self):
        """Waits until all copies that were asked for are done."""

    def content(self, storage):
        """Returns the bytes of a storage, as Python has bytes."""
        return ctypes.string_at(storage.data_ptr(), storage.nbytes())

    def with_content(self, content):
        """Makes a storage with these bytes."""
        storage = self.fresh(len(content))
        ctypes.memmove(storage.data_ptr(), content, len(content))
        return storage

    def checksum(self, storage):
        """Sums the bytes up without a copy of them: the same bytes have the same sum."""
        return zlib.crc32((ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr()))

    def others_look_at(self, storage):
        """Says whether another process may look at the bytes."""
        return storage.is_shared()

    def note_export(self, storage):
        """Others look at the bytes from now on: the mark is numpy's, by which the storage stays."""
        with unseen():
            torch.empty(0, dtype=torch.uint8).set_(storage).numpy()

    def random_state(self):
        """Returns the state that random ops of this device draw from, on the host."""
        return torch.get_rng_state()

    def set_random_state(self, state):
        torch.set_rng_state(state)

    def without_autocast(self):
        """Enters a block in which ops keep the precision of their arguments."""
        return torch.autocast(self.device.type, enabled=False)


HOST = HostDevice()
copyreg.pickle(HostDevice, lambda one: (at, (one.device,)))
_MAKERS = {"cuda": cuda.make}
_made = {HOST.device: HOST}


def add_kind(kind, make):
    """make(torch.device) has the StreamDevice of another kind of PyTorch's devices."""
    _MAKERS[kind] = make


def serves(device):
    """Says whether tensors on a device of PyTorch's may move."""
    return device in _made or device.type in _MAKERS


def at(device):
    """Returns what serves a device of PyTorch's. KeyError where nothing does."""
    found = _made.get(device)
    if found is None:
        found = _made[device] = _MAKERS[device.type](device)
        copyreg.pickle(type(found), lambda one: (at, (one.device,)))
    return found


def of(tensor_or_storage):
    """Returns the device of a tensor or storage. KeyError where none serves it."""
    return at(tensor_or_storage.device)


def others_look_at(storage):
    """Says whether others may look at the bytes: not where there are none (meta)."""
    if not serves(storage.device):
        return storage.device.type != "meta"
    return of(storage).others_look_at(storage)
