"""How many bytes this process holds, as the C library counts them, and what one call adds at most.

glibc serves blocks from 128 KiB on with mappings of their own once that threshold is fixed: they go
back to the system when they are freed, and mallinfo2() counts them in a microsecond. Peaks inside a
call come from the allocator hook of `tidepool-torch run` where it is loaded, else from the kernel's
high-water mark of resident memory, which a write to /proc/self/clear_refs sets back.
"""

import ctypes
import os

_M_MMAP_THRESHOLD = -3
_OWN_MAPPING = 128 << 10
_PAGE = 4096
_WORD = 8  # in front of a block of the heap
_HEADER = 112  # of a block that is aligned to 64 bytes, at most

_c = ctypes.CDLL(None)
_c.malloc_usable_size.argtypes = (ctypes.c_void_p,)
_c.malloc_usable_size.restype = ctypes.c_size_t


class _MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]


class _LibraryCounts:
    """Live bytes by mallinfo2, peaks by resident memory."""

    inexact = 32 * _PAGE  # so many pages each processor counts before the kernel adds them up
    is_slow = True  # it goes through all free parts of the heap

    def __init__(self):
        self._info = _c.mallinfo2
        self._info.restype = _MallInfo
        self._info.argtypes = ()
        self._in_holes = 0
        # Not by the names that allocators and counters put themselves in front of.
        self._malloc, self._free = _c["__libc_malloc"], _c["__libc_free"]
        self._malloc.argtypes, self._malloc.restype = (ctypes.c_size_t,), ctypes.c_void_p
        self._free.argtypes, self._free.restype = (ctypes.c_void_p,), None
        self._open()
        # What is open in a child of fork() are the figures of its parent.
        os.register_at_fork(after_in_child=self._open)

    def _open(self):
        try:
            self._reset = open("/proc/self/clear_refs", "wb", buffering=0)
            self._status = open("/proc/self/status", "rb", buffering=0)
            self.measures_peaks = True
        except OSError:
            self.measures_peaks = False

    def live(self):
        info = self._info()
        return info.hblkhd + info.uordblks - self._in_holes

    def without_holes(self):
        """While what is returned lives, no freed part of the heap serves a large block: its pages may
        be resident, so that nobody would see that a call takes them."""
        give_back_at_once()
        return _Filled(self)

    def fill_holes(self):
        """Takes such parts: blocks for which the heap did not grow."""
        blocks = []
        while True:
            before = self._info()
            block = self._malloc(_OWN_MAPPING)
            now = self._info()
            if not block or (now.hblks, now.arena) != (before.hblks, before.arena):
                self._free(block)
                self._in_holes += _taken_by(blocks)
                return blocks
            blocks.append(block)

    def free_holes(self, blocks):
        self._in_holes -= _taken_by(blocks)
        for block in blocks:
            self._free(block)

    def begin(self):
        if not self.measures_peaks:
            return None
        self._reset.write(b"5")
        return self._resident(b"VmRSS:")

    def most_since(self, begun):
        return 0 if begun is None else max(0, self._resident(b"VmHWM:") - begun)

    def _resident(self, line):
        self._status.seek(0)
        text = self._status.read(4096)
        at = text.index(line)
        return int(text[at:text.index(b"kB", at)].split()[1]) << 10


def _taken_by(blocks):
    return sum(_c.malloc_usable_size(block) + _WORD for block in blocks)


class _Filled:
    """Blocks in holes of the heap, which nobody touches and no count has."""

    def __init__(self, counts):
        self._counts = counts
        self._blocks = counts.fill_holes()

    def __del__(self):
        self._counts.free_holes(self._blocks)


class _HookCounts:
    """Both by the preloaded allocator hook, to the byte; it can refuse above a limit too."""

    measures_peaks = True
    inexact = 0
    is_slow = False

    def __init__(self):
        for name in ("tp_hook_live", "tp_hook_peak", "tp_hook_highest", "tp_hook_refused"):
            getattr(_c, name).restype = ctypes.c_long
        _c.tp_hook_limit.argtypes = (ctypes.c_long,)
        self.live = _c.tp_hook_live
        self.peak = _c.tp_hook_peak
        self.restart = _c.tp_hook_restart
        # A second peak, which single ops that are measured do not set back.
        self.highest = _c.tp_hook_highest
        self.forget_highest = _c.tp_hook_forget_highest
        self.limit = _c.tp_hook_limit
        self.refused = _c.tp_hook_refused

    def begin(self):
        self.restart()
        return self.live()

    def most_since(self, begun):
        return max(0, self.peak() - begun)

    def without_holes(self):
        return None


class _NoCounts:
    """On a C library other than glibc: the caller counts what it knows of."""

    measures_peaks = False
    inexact = 0
    is_slow = False
    live = None

    def begin(self):
        return None

    def most_since(self, begun):
        return 0

    def without_holes(self):
        return None


def hook_is_loaded():
    return hasattr(_c, "tp_hook_highest")


def _choose():
    if hook_is_loaded():
        return _HookCounts()
    return _LibraryCounts() if hasattr(_c, "mallinfo2") else _NoCounts()


def give_back_at_once():
    """Fixes the threshold, for the whole process: larger blocks return to the system when freed."""
    if hasattr(_c, "mallopt"):
        _c.mallopt(_M_MMAP_THRESHOLD, _OWN_MAPPING)


def block_bytes(size):
    """What a block of `size` bytes takes: one of its own mapping is whole pages with its header."""
    if size + _HEADER < _OWN_MAPPING:
        return size + _HEADER
    return (size + _HEADER + _PAGE - 1) // _PAGE * _PAGE


counts = _choose()
