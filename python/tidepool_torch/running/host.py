"""Where bytes go that leave the device: memory of the host, or a file without a name."""

import ctypes
import mmap
import os

from ..base.errors import HostTierFull, in_words
from ..base.nameless import PAGE, NamelessFile, whole_pages


class _MemoryRegion:
    is_memory = True

    def __init__(self, tier, size):
        self._tier = tier
        self.size = size
        try:
            self._map = mmap.mmap(-1, max(size, PAGE))
        except OSError as error:
            raise HostTierFull(
                f"the system has no {in_words(size)} of memory left for what leaves the device "
                f"({in_words(tier.taken)} are there): {os.strerror(error.errno)}. Next: host_dir= for "
                "a file") from None
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def write(self, pointer, size, offset=0):
        ctypes.memmove(self._base + offset, pointer, size)

    def read(self, pointer, size, offset=0):
        ctypes.memmove(pointer, self._base + offset, size)

    def release(self):
        if self._map is not None:
            self._map = None
            self._tier.taken -= self.size


class _FileRegion:
    is_memory = False

    def __init__(self, tier, size, start):
        self._tier = tier
        self.size = size
        self._start = start

    def write(self, pointer, size, offset=0):
        self._tier.file.write(pointer, size, self._start + offset)

    def read(self, pointer, size, offset=0):
        self._tier.file.read(pointer, size, self._start + offset)

    def release(self):
        if self._start is not None:
            self._tier.give_back(self._start, self.size)
            self._start = None


class HostTier:
    """Regions of host memory or, with `folder`, of a file there that has no name on disk and so is
    gone with the process. `limit` caps the bytes; None: nothing does. Its bytes of a file are
    reserved before data goes there: a full disk is an error while nothing is lost. Offsets in a
    region are multiples of `alignment`."""

    def __init__(self, folder=None, limit=None, alignment=PAGE):
        self.limit = limit
        self.taken = 0
        self.file = None
        self._free = []
        self._end = 0
        if folder is not None:
            self.file = NamelessFile(folder, direct=alignment % PAGE == 0)

    def region(self, size):
        """`size` bytes. HostTierFull where they are not to be had."""
        if self.limit is not None and self.taken + size > self.limit:
            raise HostTierFull(
                f"host memory for what leaves the device is full: {in_words(size)} more than the "
                f"{in_words(self.taken)} that are taken exceed host={in_words(self.limit)}. Next: "
                "a larger host=, or host_dir= for a file")
        if self.file is None:
            region = _MemoryRegion(self, size)
        else:
            region = _FileRegion(self, size, self._reserve(size))
        self.taken += size
        return region

    def _reserve(self, size):
        need = max(PAGE, whole_pages(size))
        for i, (start, length) in enumerate(self._free):
            if length >= need:
                self._free[i:i + 1] = [(start + need, length - need)] if length > need else []
                return start
        start = self._end
        try:
            self.file.reserve(start, need)
        except OSError as error:
            raise HostTierFull(
                f"the disk of {self.file.folder} has no {in_words(size)} left for what leaves the "
                f"device ({in_words(self.taken)} are there): {os.strerror(error.errno)}. Next: "
                "free some, or another host_dir=") from None
        self._end += need
        return start

    def give_back(self, start, size):
        self.taken -= size
        need = max(PAGE, whole_pages(size))
        pieces = sorted(self._free + [(start, need)])
        joined = []
        for start, length in pieces:
            if joined and joined[-1][0] + joined[-1][1] == start:
                joined[-1] = (joined[-1][0], joined[-1][1] + length)
            else:
                joined.append((start, length))
        self._free = joined

    def close(self):
        if self.file is not None:
            self.file.close()
