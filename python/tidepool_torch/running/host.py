"""Where bytes go that leave the device: memory of the host, or a file without a name."""

import ctypes
import errno
import mmap
import os

from ..base.device import HOST
from ..base.errors import HostTierFull, in_words
from ..base.nameless import PAGE, NamelessFile, whole_pages
from .file_copies import FileCopies
from .pieces import Pieces
from .pinned import PinnedMemory


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


def _of_full_file(number):
    return "a higher limit (ulimit -f)" if number == errno.EFBIG else "free some of the disk"


class _FileRegion:
    is_memory = False

    def __init__(self, file, size, start):
        self._file = file
        self.size = size
        self._start = start

    def write(self, pointer, size, offset=0):
        self._file.settle()
        self._file.file.write(pointer, size, self._start + offset)
        if self._file.copies is not None:
            self._file.copies.drop(self._start + offset, size)

    def read(self, pointer, size, offset=0):
        self._file.settle()
        if self._file.copies is not None:
            self._file.copies.read_here(pointer, size, self._start + offset)
        else:
            self._file.file.read(pointer, size, self._start + offset)

    def take_from(self, source, offset):
        """Asks for a copy of a tensor of bytes to an offset, on the stream that is current."""
        self._file.copies.write(source, self._start + offset)

    def give_to(self, target, offset):
        self._file.copies.read(target, self._start + offset)

    def expect(self, offset, size):
        """These bytes come back next; says whether there was room to read them ahead."""
        return self._file.copies.expect(self._start + offset, size)

    def forget_expected(self):
        self._file.copies.forget(self._start, self.size)

    def settle(self):
        self._file.settle()

    def release(self):
        if self._start is not None:
            self._file.give_back(self._start, self.size)
            self._start = None


class _File:
    """Regions of a file. `copies` are those of a device with streams, None for the host's own."""

    def __init__(self, folder, alignment, device):
        self.file = NamelessFile(folder, direct=alignment % PAGE == 0)
        self.taken = 0
        self.copies = FileCopies(device, self.file, PinnedMemory(device)) if device.has_streams else None
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
                f"a file in {self.file.folder} cannot have {in_words(size)} more for what leaves the device "
                f"(it has {in_words(self.taken)}): {os.strerror(error.errno)}. Next: "
                f"{_of_full_file(error.errno)}, or another host_dir=") from None
        self._end += need
        return start

    def give_back(self, start, size):
        if self.copies is not None:
            self.copies.forget(start, size)
            self.copies.drop(start, size)
        self.taken -= size
        self._free.give(start, max(PAGE, whole_pages(size)))

    def settle(self):
        if self.copies is not None:
            self.copies.settle()

    wait = settle

    def close(self):
        try:
            if self.copies is not None:
                self.copies.close()
        finally:
            self.file.close()


class HostTier:
    """Regions of host memory or, with `folder`, of a file there that has no name on disk and so is
    gone with the process, for what leaves `device`. `limit` caps the bytes; None: nothing does. Its
    bytes of a file are reserved before data goes there: a full disk is an error while nothing is
    lost. Offsets in a region are multiples of `alignment`."""

    def __init__(self, folder=None, limit=None, alignment=PAGE, device=HOST):
        self.limit = limit
        if folder is None:
            self._kind = PinnedMemory(device) if device.has_streams else _Memory()
            self.file = None
        else:
            self._kind = _File(folder, alignment, device)
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
