"""Where bytes go that leave the device: memory of the host, or a file without a name."""

import ctypes
import errno
import mmap
import os

from .errors import HostTierFull, in_words

_PIECE = 8 << 20
_PAGE = 4096


class _MemoryRegion:
    def __init__(self, tier, size):
        self._tier = tier
        self.size = size
        self._map = mmap.mmap(-1, max(size, _PAGE))
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
    def __init__(self, tier, size, start):
        self._tier = tier
        self.size = size
        self._start = start

    def write(self, pointer, size, offset=0):
        view = memoryview((ctypes.c_char * size).from_address(pointer)).cast("B")
        done = 0
        while done < size:
            done += os.pwrite(self._tier.file, view[done:done + _PIECE], self._start + offset + done)

    def read(self, pointer, size, offset=0):
        view = memoryview((ctypes.c_char * size).from_address(pointer)).cast("B")
        done = 0
        while done < size:
            got = os.preadv(self._tier.file, [view[done:done + _PIECE]],
                            self._start + offset + done)
            if got == 0:
                raise OSError(errno.EIO, f"the host tier's file in {self._tier.folder} ends early")
            done += got

    def release(self):
        if self._start is not None:
            self._tier.give_back(self._start, self.size)
            self._start = None


class HostTier:
    """Regions of host memory or, with `folder`, of a file there that has no name on disk and so is
    gone with the process. `limit` caps the bytes; None: nothing does. Its bytes of a file are
    reserved before data goes there: a full disk is an error while nothing is lost."""

    def __init__(self, folder=None, limit=None):
        self.folder = folder
        self.limit = limit
        self.taken = 0
        self.file = -1
        self._free = []
        self._end = 0
        if folder is not None:
            self.file = self._open(folder)

    @staticmethod
    def _open(folder):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
                raise OSError(error.errno, f"host_dir: {os.strerror(error.errno)}", folder) from None
        path = os.path.join(folder, f".tidepool-{os.getpid()}")
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(path)
        return file

    def region(self, size):
        """`size` bytes. HostTierFull where they are not to be had."""
        if self.limit is not None and self.taken + size > self.limit:
            raise HostTierFull(
                f"host memory for what leaves the device is full: {in_words(size)} more than the "
                f"{in_words(self.taken)} that are taken exceed host={in_words(self.limit)}. Next: "
                "a larger host=, or host_dir= for a file")
        if self.folder is None:
            region = _MemoryRegion(self, size)
        else:
            region = _FileRegion(self, size, self._reserve(size))
        self.taken += size
        return region

    def _reserve(self, size):
        need = max(_PAGE, (size + _PAGE - 1) // _PAGE * _PAGE)
        for i, (start, length) in enumerate(self._free):
            if length >= need:
                self._free[i:i + 1] = [(start + need, length - need)] if length > need else []
                return start
        start = self._end
        try:
            os.posix_fallocate(self.file, start, need)
        except OSError as error:
            raise HostTierFull(
                f"the disk of {self.folder} has no {in_words(size)} left for what leaves the "
                f"device ({in_words(self.taken)} are there): {os.strerror(error.errno)}. Next: "
                "free some, or another host_dir=") from None
        self._end += need
        return start

    def give_back(self, start, size):
        self.taken -= size
        need = max(_PAGE, (size + _PAGE - 1) // _PAGE * _PAGE)
        pieces = sorted(self._free + [(start, need)])
        joined = []
        for start, length in pieces:
            if joined and joined[-1][0] + joined[-1][1] == start:
                joined[-1] = (joined[-1][0], joined[-1][1] + length)
            else:
                joined.append((start, length))
        self._free = joined

    def close(self):
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
