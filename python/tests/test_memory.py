"""What a call takes, by the C library's count and the kernel's mark of resident memory."""

import ctypes
import os

import pytest
import torch

from tidepool_torch.base import instances, memory
from tidepool_torch.base.memory import counts, hook_is_loaded

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


@pytest.mark.skipif(not hook_is_loaded(), reason="the hook counts what a list takes")
def test_a_script_of_many_objects_is_looked_through_in_little_memory():
    many = [[n] for n in range(300_000)]
    tensor, part = torch.ones(3), torch.nn.Linear(2, 2)
    begun = counts.begin()
    found = instances.of_exactly(torch.Tensor, torch.nn.Parameter)
    assert counts.most_since(begun) < len(many)  # a list of them all has eight times as many bytes
    assert {id(tensor), id(part.weight)} <= {id(o) for o in found}
    assert any(m is part for m in instances.of_any(torch.nn.Module))
