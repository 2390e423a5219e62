"""A file without a name, gone with the process, and transfers to and from it.

They go around the page cache where the file system does that (O_DIRECT): pages of a cache would be
charged to the memory that the budget is there to save, and a disk would be measured as fast as they
are. Direct transfers need aligned memory, which PyTorch's blocks are not, so each goes through a
piece of it.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import queue

PAGE = 4096
_PIECE = 2 << 20
_PIECES = 2  # one for each direction


class NamelessFile:
    """Offsets are multiples of PAGE where it is `direct`. Several threads may use it."""

    def __init__(self, folder, direct=True):
        self.folder = folder
        self._pieces = queue.SimpleQueue()
        self.number = -1
        if direct:
            self.number = self._try_direct(folder)
        self.direct = self.number >= 0
        if not self.direct:
            self.number = _open(folder, 0)
        for _ in range(_PIECES):
            self._pieces.put(None)  # made when one is used

    @staticmethod
    def _try_direct(folder):
        """A file that took a direct transfer, or -1."""
        try:
            fd = _open(folder, os.O_DIRECT)
        except OSError as error:
            if error.errno == errno.EINVAL:  # this file system has none
                return -1
            raise
        try:
            with mmap.mmap(-1, PAGE) as page:
                os.pwrite(fd, page, 0)
                os.ftruncate(fd, 0)
            return fd
        except OSError:
            os.close(fd)
            return -1

    def reserve(self, start, size):
        """OSError where the disk has no room for these bytes."""
        os.posix_fallocate(self.number, start, size)

    def write(self, pointer, size, offset):
        for piece, done, n in self._in_pieces(pointer, size):
            if piece is None:
                self._all(os.pwrite, _bytes_at(pointer + done, n), offset + done)
                continue
            ctypes.memmove(piece.address, pointer + done, n)
            self._all(os.pwrite, piece.view[:whole_pages(n)], offset + done)

    def read(self, pointer, size, offset):
        for piece, done, n in self._in_pieces(pointer, size):
            if piece is None:
                self._all(_read, _bytes_at(pointer + done, n), offset + done)
                continue
            self._all(_read, piece.view[:whole_pages(n)], offset + done)
            ctypes.memmove(pointer + done, piece.address, n)

    def _in_pieces(self, pointer, size):
        with self._piece() as piece:
            for done in range(0, size, _PIECE):
                yield piece, done, min(_PIECE, size - done)

    @contextlib.contextmanager
    def _piece(self):
        """Aligned memory, None where none is needed."""
        if not self.direct:
            yield None
            return
        piece = self._pieces.get() or _Piece()
        try:
            yield piece
        finally:
            self._pieces.put(piece)

    def _all(self, transfer, view, offset):
        done = 0
        while done < len(view):
            moved = transfer(self.number, view[done:], offset + done)
            if moved == 0:
                raise OSError(errno.EIO, f"the host tier's file in {self.folder} ends early")
            done += moved

    def close(self):
        if self.number >= 0:
            os.close(self.number)
            self.number = -1


class _Piece:
    def __init__(self):
        memory = mmap.mmap(-1, _PIECE)
        self.view = memoryview(memory)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(memory))


def whole_pages(size):
    """Rounded up."""
    return (size + PAGE - 1) // PAGE * PAGE


def _bytes_at(pointer, size):
    return memoryview((ctypes.c_char * size).from_address(pointer)).cast("B")


def _read(fd, view, offset):
    return os.preadv(fd, [view], offset)


def _open(folder, flags):
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | flags, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
            raise OSError(error.errno, f"host_dir: {os.strerror(error.errno)}", folder) from None
    path = os.path.join(folder, f".tidepool-{os.getpid()}")
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o600)
    except OSError as error:
        raise OSError(error.errno, f"host_dir: {os.strerror(error.errno)}", folder) from None
    os.unlink(path)
    return fd
