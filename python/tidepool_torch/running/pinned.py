"""Memory of the host that a device with streams copies from and to beside other work.

To pin memory takes as long as to fill it, so regions are parts of large slabs.
"""

import ctypes
import mmap
import os

import torch

from ..base.errors import HostTierFull, in_words
from ..base.nameless import PAGE, whole_pages
from .pieces import Pieces

_SLAB = 64 << 20

# Drivers register no more in one piece, and a copy lies in one.
MOST_AT_ONCE = 64 << 30


def _whole(size):
    return max(PAGE, whole_pages(size))


def _cut(tensor, begin, size):
    return tensor if size == tensor.numel() else tensor[begin:begin + size]


class _Slab:
    def __init__(self, device, size):
        self.size = size
        self._device = device
        self._map = mmap.mmap(-1, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        with torch.inference_mode(False):  # of a tensor that is made in it no copy is taken outside
            self.bytes = torch.frombuffer(self._map, dtype=torch.uint8)
        self.free = Pieces()
        self.free.give(0, size)
        for start in range(0, size, MOST_AT_ONCE):
            device.pin(self.address + start, min(MOST_AT_ONCE, size - start))

    def release(self):
        for start in range(0, self.size, MOST_AT_ONCE):
            self._device.unpin(self.address + start)
        self.bytes = None


class Region:
    """Bytes of a slab. Where copies may still use them when it is released, nobody else gets them."""

    is_memory = True

    def __init__(self, memory, slab, start, size):
        self._memory = memory
        self.slab = slab
        self.start = start
        self.size = size
        self._parts = {}  # (offset, size) -> a tensor over these bytes

    def _part(self, offset, size):
        part = self._parts.get((offset, size))
        if part is None:
            part = self._parts[offset, size] = self.slab.bytes[self.start + offset:
                                                               self.start + offset + size]
        return part

    def take_from(self, source, offset):
        """Asks for a copy of a tensor of bytes to an offset, on the stream that is current."""
        for done, size in self._cuts(offset, source.numel()):
            self._part(offset + done, size).copy_(_cut(source, done, size), non_blocking=True)

    def give_to(self, target, offset):
        for done, size in self._cuts(offset, target.numel()):
            _cut(target, done, size).copy_(self._part(offset + done, size), non_blocking=True)

    def _cuts(self, offset, size):
        """(begin, bytes) of the parts that lie in one registered piece each."""
        start = self.start + offset
        first = MOST_AT_ONCE - start % MOST_AT_ONCE
        if size <= first:
            return ((0, size),)
        ends = [*range(first, size, MOST_AT_ONCE), size]
        return [(begin, end - begin) for begin, end in zip([0, *ends], ends)]

    def write(self, pointer, size, offset=0):
        """For the host, when no copy runs."""
        ctypes.memmove(self.address + offset, pointer, size)

    def read(self, pointer, size, offset=0):
        ctypes.memmove(pointer, self.address + offset, size)

    @property
    def address(self):
        return self.slab.address + self.start

    def release(self, copies_use_it=True):
        """`copies_use_it`: such as were asked for on the stream that is current."""
        if self.slab is not None:
            self._parts.clear()
            self._memory.give_back(self, copies_use_it)
            self.slab = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.release()


class PinnedMemory:
    """Regions for the copies of `device`. `taken` are bytes of those that somebody has or copies may
    still use."""

    def __init__(self, device):
        self._device = device
        self._slabs = []
        self._leaving = []  # (event, slab, start, size)
        self.taken = 0

    def region(self, size):
        """`size` bytes. HostTierFull where they are not to be had."""
        self._reclaim()
        slab, start = self._find(_whole(size))
        self.taken += size
        return Region(self, slab, start, size)

    def give_back(self, region, copies_use_it):
        if not copies_use_it:
            self._free(region.slab, region.start, region.size)
            return
        used = self._device.event()
        used.record(self._device.current())
        self._leaving.append((used, region.slab, region.start, region.size))

    def _free(self, slab, start, size):
        slab.free.give(start, _whole(size))
        self.taken -= size

    def reclaim_one(self):
        """Waits for the copies of one region that was given back; whether there was one."""
        if self._leaving:
            used, *region = self._leaving.pop(0)
            used.synchronize()
            self._free(*region)
            return True
        return False

    def wait(self):
        """Until no copy uses a region that was given back."""
        self._device.wait()
        self._reclaim()

    def close(self):
        self._device.wait()
        for slab in self._slabs:
            slab.release()
        self._slabs.clear()
        self._leaving.clear()

    def _reclaim(self):
        leaving = []
        for used, slab, start, size in self._leaving:
            if used.query():
                self._free(slab, start, size)
            else:
                leaving.append((used, slab, start, size))
        self._leaving = leaving
        # One stays, for what comes next.
        for slab in [s for s in self._slabs[1:] if s.free.is_all(s.size)]:
            self._slabs.remove(slab)
            slab.release()

    def _find(self, need):
        for slab in self._slabs:
            start = slab.free.take(need)
            if start is not None:
                return slab, start
        slab = self._new_slab(need)
        return slab, slab.free.take(need)

    def _new_slab(self, need):
        size = max(need, _SLAB)
        try:
            slab = _Slab(self._device, size)
        except (OSError, RuntimeError) as error:
            why = os.strerror(error.errno) if isinstance(error, OSError) else str(error)
            raise HostTierFull(
                f"the system has no {in_words(size)} of memory left that the device can copy to "
                f"({in_words(self.taken)} are there): {why}. Next: host_dir= for a file, or a higher "
                "limit of locked memory (ulimit -l)") from None
        self._slabs.append(slab)
        return slab
