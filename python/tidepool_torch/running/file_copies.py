"""Copies between a device with streams and a file, through memory that the device copies to and from.

Two threads wait for the disk, one in each direction, while the host goes on. A stream cannot wait for a
thread: so what comes back is read ahead, and the host waits only for bytes that the disk has not given yet.
"""

import collections
import concurrent.futures
import ctypes

from ..base.errors import HostTierFull

# Bytes that go at once, and those under way in each direction at most.
_PIECE = 16 << 20
_MOST = 64 << 20


class _Transfer:
    """Bytes of the file from `start` on, on their way through `piece` when `work` is done."""

    def __init__(self, start, size, piece, work):
        self.start = start
        self.size = size
        self.piece = piece
        self.work = work
        self.is_wanted = True

    def is_over(self, start, size):
        return self.start < start + size and start < self.start + self.size


def _pieces(size):
    return [(done, min(_PIECE, size - done)) for done in range(0, size, _PIECE)]


class FileCopies:
    """Serves one thread of the host. A write that failed is raised by the next one, a read by its own call."""

    def __init__(self, device, file, pinned):
        self._device = device
        self._file = file
        self._pinned = pinned
        self._writer, self._reader = (
            concurrent.futures.ThreadPoolExecutor(1, f"tidepool-{name}") for name in ("write", "read"))
        self._writes = collections.deque()
        self._ahead = {}  # start -> the _Transfer of what is expected
        self._unwritten = []  # those that the disk did not take: their pieces have the bytes
        self._error = None  # why, until that was raised

    def write(self, source, start):
        """Asks for a copy of a tensor of bytes, on the stream that is current."""
        self._raise_what_failed()
        self.forget(start, source.numel())
        self.drop(start, source.numel())
        for done, size in _pieces(source.numel()):
            while self._writes and (self._writes[0].work.done() or self._bytes_of(self._writes) + size > _MOST):
                self._end_write()
            piece = self._pinned.region(size)
            try:
                piece.take_from(source[done:done + size], 0)
                there = self._device.event()
                there.record(self._device.current())
            except BaseException:
                piece.release()
                raise
            work = self._writer.submit(self._write, there, piece, size, start + done)
            self._writes.append(_Transfer(start + done, size, piece, work))

    def _write(self, there, piece, size, start):
        there.synchronize()
        self._file.write(piece.address, size, start)

    def _end_write(self):
        """Ends the first one. Ctrl-C leaves it among them: later reads have to wait for it. What the disk did
        not take stays in memory, and the next write() says so."""
        concurrent.futures.wait([self._writes[0].work])
        ended = self._writes.popleft()
        error = ended.work.exception()
        if error is None or not ended.is_wanted:
            ended.piece.release(copies_use_it=False)
            return
        self._unwritten.append(ended)
        self._error = error

    def _raise_what_failed(self):
        error, self._error = self._error, None
        if error is not None:
            raise error

    def drop(self, start, size):
        """Drops what was not written of bytes that are somebody else's from now on."""
        for t in self._writes:
            t.is_wanted = t.is_wanted and not t.is_over(start, size)
        for found in [t for t in self._unwritten if t.is_over(start, size)]:
            self._unwritten.remove(found)
            found.piece.release(copies_use_it=False)

    def read_here(self, pointer, size, start):
        """Reads for the host, when all is settled: the file, and what it did not take."""
        self._file.read(pointer, size, start)
        self._add_unwritten(pointer, size, start)

    def expect(self, start, size):
        """Reads what the next read() wants, as far as there is room; returns whether there was."""
        for done, part in _pieces(size):
            if start + done in self._ahead:
                continue
            if self._bytes_of(self._ahead.values()) + part > _MOST:
                return False
            try:
                self._ahead[start + done] = self._begin_read(start + done, part)
            except HostTierFull:
                return False  # read() will say so where it has none either
        return True

    def read(self, target, start):
        """Asks for a copy to a tensor of bytes, on the stream that is current; waits for the disk."""
        for done, size in _pieces(target.numel()):
            found = self._ahead.get(start + done)
            if found is None or found.size != size:
                self.forget(start + done, size)
                found = self._ahead[start + done] = self._begin_read(start + done, size)
            concurrent.futures.wait([found.work])  # Ctrl-C leaves it as one that was expected
            del self._ahead[start + done]
            while self._writes and self._writes[0].work.done():
                self._end_write()
            try:
                found.work.result()
                self._add_unwritten(found.piece.address, size, found.start)
                found.piece.give_to(target[done:done + size], 0)
            finally:
                found.piece.release()

    def _add_unwritten(self, pointer, size, start):
        for t in self._unwritten:
            begin, end = max(start, t.start), min(start + size, t.start + t.size)
            if begin < end:
                ctypes.memmove(pointer + begin - start, t.piece.address + begin - t.start, end - begin)

    def _begin_read(self, start, size):
        while self._pinned.taken + size > 2 * _MOST and self._pinned.reclaim_one():
            pass
        piece = self._pinned.region(size)
        before = [w.work for w in self._writes if w.is_over(start, size)]
        return _Transfer(start, size, piece, self._reader.submit(self._read, before, piece, size, start))

    def _read(self, before, piece, size, start):
        concurrent.futures.wait(before)
        self._file.read(piece.address, size, start)

    def forget(self, start=0, size=1 << 62):
        """Forgets what was expected of these bytes: it is not wanted, or no longer true."""
        for found in [r for r in self._ahead.values() if r.is_over(start, size)]:
            concurrent.futures.wait([found.work])
            del self._ahead[found.start]
            found.piece.release(copies_use_it=False)

    def settle(self):
        """Waits until the file has all that was written, and nobody reads it."""
        self.forget()
        while self._writes:
            self._end_write()

    def close(self):
        try:
            self.settle()
        finally:
            self._writer.shutdown()
            self._reader.shutdown()
            self._pinned.close()

    @staticmethod
    def _bytes_of(transfers):
        return sum(t.size for t in transfers)
