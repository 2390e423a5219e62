"""What a call takes, by the C library's count and the kernel's mark of resident memory."""

import ctypes
import os

import pytest
import torch

from tidepool_torch import memory

_c = ctypes.CDLL(None)
_c.malloc.restype = ctypes.c_void_p
_c.free.argtypes = (ctypes.c_void_p,)
TAKEN = 4 << 20

pytestmark = pytest.mark.skipif(not hasattr(_c, "mallinfo2"), reason="the C library is not glibc")


def measured(counts):
    filled = counts.without_holes()
    _run(counts)  # what was never used before in this process is read into memory
    taken = _run(counts)
    del filled
    return taken


def _run(counts):
    begun = counts.begin()
    torch.empty(TAKEN, dtype=torch.uint8).fill_(1)
    return counts.most_since(begun)


def is_right(taken):
    return abs(taken - TAKEN) < 1 << 20  # the kernel counts some pages late


def test_a_child_of_fork_measures_itself():
    counts = memory._LibraryCounts()
    assert is_right(measured(counts))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if is_right(measured(counts)) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_what_was_freed_before_hides_nothing():
    counts = memory._LibraryCounts()
    size = 100 << 10  # below the threshold of blocks with a mapping of their own
    blocks = [_c.malloc(size) for _ in range(2 * TAKEN // size)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    for block in blocks[:-1]:
        _c.free(block)
    live = counts.live()
    taken = measured(counts)
    assert abs(counts.live() - live) < 64 << 10
    _c.free(blocks[-1])
    assert is_right(taken)
