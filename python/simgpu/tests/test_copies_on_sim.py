"""CopyStreams and pinned memory by themselves, each rule of theirs kept and broken."""

import collections
import types

import pytest
import torch

import simgpu
from sim_training import SIM
from tidepool_torch.base import device
from tidepool_torch.running.copy_streams import CopyStreams
from tidepool_torch.running import pinned
from tidepool_torch.running.pinned import PinnedMemory

POLICIES = ("eager", "lazy", "last", "random")
SIZE = 1 << 16
WHERE = device.at(SIM)

Instruction = collections.namedtuple("Instruction", "is_copy stream source target")
OP = Instruction(False, -1, None, None)


class Schedule:
    """Op 0 writes block 0, which is copied out to bytes of the host and back to block 1; op 3 reads
    that."""

    plan = types.SimpleNamespace(placements={
        0: types.SimpleNamespace(offset=0, bytes=SIZE), 1: types.SimpleNamespace(offset=SIZE, bytes=SIZE)})
    instructions = [OP, Instruction(True, 1, 0, "host"), Instruction(True, 2, "host", 1), OP]
    copy_waits = [[], [0], [1], [2]]
    waits_for_last_step = [[], [], [], []]


class Walk:
    """What an executor does with that schedule."""

    def __init__(self):
        self.memory = PinnedMemory(WHERE)
        self.region = self.memory.region(SIZE)
        self.copies = CopyStreams(Schedule, (1, 2), WHERE, self._copy, self._finish)
        self.blocks = {}

    def _copy(self, i, stream):
        with self.copies.on(stream):
            if i == 1:
                WHERE.out(self.blocks[0], self.region)
        if i == 2:
            self.blocks[1] = self.copies.fresh_for(1, SIZE, stream)
            with self.copies.on(stream):
                WHERE.back(self.blocks[1], self.region)

    def _finish(self, i):
        self.copies.is_done(i)

    def begin(self):
        self.copies.begin()
        x = torch.full((SIZE,), 7, dtype=torch.uint8, device=SIM)
        self.blocks[0] = x.untyped_storage()
        self.copies.is_done(0)
        self.copies.start(1)
        self.copies.start(2)

    def read(self):
        self.copies.wait(3)
        there = torch.empty(0, dtype=torch.uint8, device=SIM).set_(self.blocks[1])
        return (there + 1).cpu()

    def close(self):
        self.copies.close()
        self.region.release()
        self.memory.close()


@pytest.fixture(params=POLICIES)
def walk(request):
    simgpu.policy(request.param, 5)
    one = Walk()
    yield one
    one.close()


def test_bytes_come_back(walk):
    walk.begin()
    assert (walk.read() == 8).all()
    walk.copies.end([0, 1])
    assert simgpu.races() == []


def test_a_copy_back_waits_for_the_copy_out(walk):
    walk.copies._waits = [[], [0], [], [2]]
    walk.begin()
    walk.read()
    assert any("copy to device" in race and "copy to host" in race for race in simgpu.races())


@pytest.mark.parametrize("ends", [True, False])
def test_what_comes_behind_a_step_finds_its_copies_done(walk, ends):
    walk.begin()
    if ends:
        walk.copies.end([0, 1])
    there = torch.empty(0, dtype=torch.uint8, device=SIM).set_(walk.blocks[1])
    there.add_(1)
    assert bool(simgpu.races()) != ends


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_block_that_becomes_pytorchs_is_settled_before(walk, is_settled):
    walk.begin()
    if is_settled:
        walk.copies.settle(0)
    del walk.blocks[0]
    torch.empty(SIZE, dtype=torch.uint8, device=SIM)  # gets its bytes
    assert bool(simgpu.races()) != is_settled


@pytest.mark.parametrize("is_retired", [True, False])
def test_a_block_in_limbo_is_nobodys(walk, is_retired):
    walk.begin()
    block = walk.blocks.pop(0)
    if is_retired:
        walk.copies.retire(0, block)
    del block
    other = torch.empty(SIZE, dtype=torch.uint8, device=SIM)
    assert bool(simgpu.races()) != is_retired
    walk.copies.end([0, 1])  # limbo is over
    del other
    torch.empty(2 * SIZE, dtype=torch.uint8, device=SIM)
    assert simgpu.races() == []


def test_the_host_never_waits(walk):
    walk.begin()
    waits = simgpu.stats()["host_syncs"]
    walk.copies.wait(3)
    walk.copies.settle(0)
    walk.copies.end([0, 1])
    walk.copies.begin()
    assert simgpu.stats()["host_syncs"] == waits


@pytest.mark.parametrize("waits", [True, False])
def test_a_copy_waits_for_one_of_the_step_before(walk, waits):
    """Its bytes of the host are read there, on the other stream."""
    if waits:
        walk.copies._waits_for_last_step = [[], [2], [], []]
    walk.begin()
    before = dict(walk.blocks)  # nobody else gets these
    walk.begin()
    assert bool(simgpu.races()) != waits
    del before


def test_a_copy_takes_the_block_in_limbo_that_its_addresses_were(walk):
    walk.copies._placements = {p: types.SimpleNamespace(offset=0, bytes=SIZE) for p in (0, 1)}
    walk.copies.begin()
    walk.blocks[0] = torch.full((SIZE,), 7, dtype=torch.uint8, device=SIM).untyped_storage()
    address = walk.blocks[0].data_ptr()
    walk.copies.is_done(0)
    walk.copies.start(1)
    walk.copies.retire(0, walk.blocks.pop(0))
    walk.copies.start(2)
    assert walk.blocks[1].data_ptr() == address
    assert walk.copies.in_limbo() == 0
    assert (walk.read() == 8).all()
    assert simgpu.races() == []


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("is_kept", [True, False])
def test_host_memory_that_a_copy_still_uses_is_nobodys(policy, is_kept, monkeypatch):
    def at_once(memory, region, _):
        region.slab.free.give(region.start, SIZE)
        memory.taken -= SIZE

    if not is_kept:
        monkeypatch.setattr(PinnedMemory, "give_back", at_once)
    simgpu.policy(policy, 3)
    memory, side = PinnedMemory(WHERE), torch.Stream(device=SIM)
    x = torch.ones(SIZE, dtype=torch.uint8, device=SIM)
    side.wait_stream(torch.accelerator.current_stream(SIM))
    with side:
        region = memory.region(SIZE)
        WHERE.out(x.untyped_storage(), region)
        region.release()
    WHERE.out(x.untyped_storage(), memory.region(SIZE))
    assert bool(simgpu.races()) != is_kept
    memory.close()


def test_pinned_memory_is_returned_when_all_of_a_slab_is_free():
    memory = PinnedMemory(WHERE)
    large = [memory.region(100 << 20) for _ in range(2)]
    assert len(memory._slabs) == 2
    for region in large:
        region.release()
    simgpu.synchronize()
    memory.region(SIZE)
    assert len(memory._slabs) == 1
    memory.close()
    assert memory._slabs == []


@pytest.mark.parametrize("most", [4096, 12288])
def test_large_slabs_are_registered_in_pieces_and_no_copy_lies_in_two(most, monkeypatch):
    monkeypatch.setattr(pinned, "MOST_AT_ONCE", most)
    monkeypatch.setattr(pinned, "_SLAB", 1)
    memory = PinnedMemory(device.at(SIM))
    draws = torch.Generator().manual_seed(0)
    with memory.region(50_000) as region:
        for offset, size in ((0, 50_000), (4000, 200), (4096, 4096), (100, 20_000)):
            source = torch.randint(0, 255, (size,), dtype=torch.uint8, generator=draws).to(SIM)
            target = torch.empty_like(source)
            waits = simgpu.stats()["host_syncs"]
            region.take_from(source, offset)
            region.give_to(target, offset)
            assert simgpu.stats()["host_syncs"] == waits  # pageable memory would be waited for
            assert torch.equal(target.cpu(), source.cpu())
            assert all(o // most == (o + n - 1) // most
                       for o, n in ((offset + begin, part) for begin, part in region._cuts(offset, size)))
    memory.close()
