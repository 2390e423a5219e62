"""Where bytes go that leave the device: memory of the host, or a file without a name."""

import ctypes
import mmap
import os

from ..base.device import HOST
from ..base.errors import HostTierFull, in_words
from ..base.nameless import PAGE, NamelessFile, whole_pages
from .pieces import Pieces
from .pinned import PinnedMemory

# Bytes that go between a device with streams and a file at once.
_PIECE = 16 << 20


class _MemoryRegion:
    is_memory = True

    def __init__(self, memory, size):
        self._memory = memory
        self.size = size
        try:
            self._map = mmap.mmap(-1, max(size, PAGE))
        except OSError as error:
            raise HostTierFull(
                f"the system has no {in_words(size)} of memory left for what leaves the device "
                f"({in_words(memory.taken)} are there): {os.strerror(error.errno)}. Next: host_dir= for "
                "a file") from None
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def write(self, pointer, size, offset=0):
        ctypes.memmove(self._base + offset, pointer, size)

    def read(self, pointer, size, offset=0):
        ctypes.memmove(pointer, self._base + offset, size)

    def release(self):
        if self._map is not None:
            self._map = None
            self._memory.taken -= self.size


class _Memory:
    """Memory of the process, for a device that copies by itself."""

    def __init__(self):
        self.taken = 0

    def region(self, size):
        region = _MemoryRegion(self, size)
        self.taken += size
        return region

    def wait(self):
        pass

    def close(self):
        pass


class _FileRegion:
    is_memory = False

    def __init__(self, file, size, start):
        self._file = file
        self.size = size
        self._start = start

    def write(self, pointer, size, offset=0):
        self._file.file.write(pointer, size, self._start + offset)

    def read(self, pointer, size, offset=0):
        self._file.file.read(pointer, size, self._start + offset)

    def take_from(self, source, offset):
        """Copies a tensor of bytes to an offset, through memory that its device copies to."""
        with self._file.between(source.numel()) as piece:
            for done in range(0, source.numel(), piece.size):
                part = source[done:done + piece.size]
                piece.take_from(part, 0)
                self._file.wait()
                self.write(piece.address, part.numel(), offset + done)

    def give_to(self, target, offset):
        with self._file.between(target.numel()) as piece:
            for done in range(0, target.numel(), piece.size):
                part = target[done:done + piece.size]
                self._file.wait()
                self.read(piece.address, part.numel(), offset + done)
                piece.give_to(part, 0)

    def release(self):
        if self._start is not None:
            self._file.give_back(self._start, self.size)
            self._start = None


class _File:
    """Regions of a file. What a device with streams has goes through `pinned`, of which a piece is
    taken for each copy."""

    def __init__(self, folder, alignment, pinned):
        self.file = NamelessFile(folder, direct=alignment % PAGE == 0)
        self.taken = 0
        self._pinned = pinned
        self._free = Pieces()
        self._end = 0

    def region(self, size):
        region = _FileRegion(self, size, self._reserve(max(PAGE, whole_pages(size)), size))
        self.taken += size
        return region

    def _reserve(self, need, size):
        start = self._free.take(need)
        if start is not None:
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

    def between(self, size):
        return self._pinned.region(min(size, _PIECE))

    def give_back(self, start, size):
        self.taken -= size
        self._free.give(start, max(PAGE, whole_pages(size)))

    def wait(self):
        if self._pinned is not None:
            self._pinned.wait()

    def close(self):
        self.file.close()
        if self._pinned is not None:
            self._pinned.close()


class HostTier:
    """Regions of host memory or, with `folder`, of a file there that has no name on disk and so is
    gone with the process, for what leaves `device`. `limit` caps the bytes; None: nothing does. Its
    bytes of a file are reserved before data goes there: a full disk is an error while nothing is
    lost. Offsets in a region are multiples of `alignment`."""

    def __init__(self, folder=None, limit=None, alignment=PAGE, device=HOST):
        self.limit = limit
        memory = PinnedMemory(device) if device.has_streams else _Memory()
        if folder is None:
            self._kind, self.file = memory, None
        else:
            self._kind = _File(folder, alignment, memory if device.has_streams else None)
            self.file = self._kind.file

    @property
    def taken(self):
        return self._kind.taken

    def region(self, size):
        """`size` bytes. HostTierFull where they are not to be had."""
        if self._exceeds(size):
            self._kind.wait()  # for copies that still use regions which were given back
        if self._exceeds(size):
            raise HostTierFull(
                f"host memory for what leaves the device is full: {in_words(size)} more than the "
                f"{in_words(self.taken)} that are taken exceed host={in_words(self.limit)}. Next: "
                "a larger host=, or host_dir= for a file")
        return self._kind.region(size)

    def _exceeds(self, size):
        return self.limit is not None and self.taken + size > self.limit

    def close(self):
        self._kind.close()
