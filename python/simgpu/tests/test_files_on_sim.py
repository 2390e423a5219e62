"""A file behind a device with streams: two threads wait for the disk while the host goes on."""

import concurrent.futures
import contextlib
import ctypes
import itertools
import os
import time

import pytest
import torch

import simgpu
from processes import in_process_of_its_own
from sim_training import SIM, Case, differences, inside, plain
from test_faults_on_sim import STOPPED, in_turn
from tidepool_torch.base import device, nameless
from tidepool_torch.running import file_copies, host
from tidepool_torch.running.file_copies import FileCopies

POLICIES = ("eager", "lazy", "last", "random")
SOME = POLICIES if "TIDEPOOL_ATTACKS" in os.environ else ("lazy", "random")
SECONDS = 0.002  # that a slow disk takes for a transfer


@pytest.fixture
def slow(monkeypatch):
    _be_slow(monkeypatch.setattr)


def _be_slow(patch):
    for name in ("write", "read"):
        def move(self, *arguments, by=getattr(nameless.NamelessFile, name)):
            time.sleep(SECONDS)
            by(self, *arguments)

        patch(nameless.NamelessFile, name, move)


@pytest.mark.parametrize("policy", SOME)
@pytest.mark.parametrize("case, share", [(Case(), 0.6), (Case("resnet", "sgd", rows=16), 0.45),
                                         (Case("llama", "fused"), 0.6)], ids=["gpt", "resnet", "llama"])
def test_training_with_a_file_has_the_bits_of_plain(case, share, policy, tmp_path, slow):
    ran = inside(case, share, policy, host_dir=str(tmp_path), allow=("swap",))
    assert differences(plain(case), ran) == []
    assert simgpu.races() == []
    assert ran.planned_steps > 0
    assert ran.moved > 0


@pytest.mark.parametrize("policy", SOME)
def test_tensors_of_several_pieces(policy, tmp_path, monkeypatch):
    monkeypatch.setattr(file_copies, "_PIECE", 8192)
    monkeypatch.setattr(file_copies, "_MOST", 3 * 8192)
    ran = inside(Case(), 0.6, policy, host_dir=str(tmp_path), allow=("swap",))
    assert differences(plain(Case()), ran) == []
    assert simgpu.races() == []
    assert ran.planned_steps > 0


@pytest.mark.parametrize("policy", ["lazy", "random"])
def test_a_step_that_stops_with_a_file(policy, tmp_path):
    case, share, options = STOPPED
    simgpu.policy("eager")
    stopped_plainly = inside(case, 1.0, "eager", step=options["step"], host_dir=str(tmp_path))
    ran = inside(case, share, policy, host_dir=str(tmp_path), **options)
    assert differences(stopped_plainly, ran) == []
    assert simgpu.races() == []
    assert ran.moved > 0


def test_most_of_what_comes_back_in_planned_steps_is_read_ahead(tmp_path, monkeypatch):
    found = []
    read = FileCopies.read

    def noted(self, target, start):
        found.append(start in self._ahead)
        read(self, target, start)

    monkeypatch.setattr(FileCopies, "read", noted)
    ran = inside(Case(), 0.6, "eager", host_dir=str(tmp_path), allow=("swap",),
                 before_step=lambda number, _: found.clear() if number == 4 else None)
    assert ran.planned_steps > 0
    assert len(found) > 10
    assert sum(found) > len(found) // 2


@pytest.fixture
def copies(tmp_path):
    tier = host.HostTier(str(tmp_path), device=device.at(SIM))
    yield tier._kind.copies
    with contextlib.suppress(OSError):
        tier.close()


def test_what_was_expected_and_then_written_is_read_anew(copies):
    one, other = (torch.full((5000,), x, dtype=torch.uint8).to(SIM) for x in (1, 2))
    target = torch.empty(5000, dtype=torch.uint8, device=SIM)
    copies._file.reserve(0, 8192)
    copies.write(one, 0)
    assert copies.expect(0, 5000)
    copies.write(other, 0)
    copies.read(target, 0)
    assert torch.equal(target.cpu(), other.cpu())


def test_the_memory_in_flight_is_bounded(copies, monkeypatch, slow):
    monkeypatch.setattr(file_copies, "_MOST", 40_000)
    source = torch.ones(10_000, dtype=torch.uint8, device=SIM)
    copies._file.reserve(0, 1 << 20)
    most = 0
    for i in range(20):
        copies.write(source, 12288 * i)
        most = max(most, copies._pinned.taken)
    copies.settle()
    target = torch.empty(10_000, dtype=torch.uint8, device=SIM)
    for i in range(20):
        copies.read(target, 12288 * i)
        copies.expect(12288 * ((i + 1) % 20), 10_000)
        most = max(most, copies._pinned.taken)
    assert most <= 2 * 40_000


def _fail(*_):
    raise OSError(5, "the disk fails")


def test_what_a_disk_did_not_take_stays_in_memory_and_is_said(copies, monkeypatch):
    one, other = (torch.full((5000,), x, dtype=torch.uint8).to(SIM) for x in (1, 2))
    target = torch.empty(5000, dtype=torch.uint8, device=SIM)
    copies._file.reserve(0, 16384)
    with monkeypatch.context() as broken:
        broken.setattr(nameless.NamelessFile, "write", _fail)
        copies.write(one, 0)
        copies.settle()
    copies.read(target, 0)
    assert torch.equal(target.cpu(), one.cpu())
    host_bytes = bytearray(5000)
    copies.read_here(ctypes.addressof(ctypes.c_char.from_buffer(host_bytes)), 5000, 0)
    assert host_bytes == one.cpu().numpy().tobytes()
    with pytest.raises(OSError, match="the disk fails"):
        copies.write(other, 8192)
    copies.write(other, 0)
    copies.read(target, 0)
    assert torch.equal(target.cpu(), other.cpu())
    assert copies._unwritten == []


def test_a_read_that_fails_is_said(copies, monkeypatch):
    monkeypatch.setattr(nameless.NamelessFile, "read", _fail)
    with pytest.raises(OSError, match="the disk fails"):
        copies.read(torch.ones(5000, dtype=torch.uint8, device=SIM), 0)


@pytest.mark.parametrize("policy", SOME)
def test_training_goes_on_with_what_a_disk_did_not_take(policy, tmp_path, monkeypatch):
    """Were it not told: each fifth write fails, and all that comes back is right."""
    count = itertools.count()
    write = FileCopies._write

    def fails_often(self, there, *arguments):
        if next(count) % 5 == 2:
            there.synchronize()
            _fail()
        write(self, there, *arguments)

    monkeypatch.setattr(FileCopies, "_write", fails_often)
    monkeypatch.setattr(FileCopies, "_raise_what_failed", lambda self: None)
    ran = inside(Case(steps=8), 0.6, policy, host_dir=str(tmp_path), allow=("swap",))
    assert differences(plain(Case(steps=8)), ran) == []
    assert simgpu.races() == []
    assert ran.planned_steps > 0
    assert next(count) > 100


def writes_do_not_wait_for_the_device(patch):
    def write(self, there, piece, size, start):
        self._file.write(piece.address, size, start)

    patch(FileCopies, "_write", write)


def reads_do_not_wait_for_writes(patch):
    def read(self, before, piece, size, start):
        self._file.read(piece.address, size, start)

    patch(FileCopies, "_read", read)


def pieces_are_given_back_at_once(patch):
    begin_read = FileCopies._begin_read

    def begin(self, start, size):
        found = begin_read(self, start, size)
        give = found.piece.release
        found.piece.release = lambda copies_use_it=True: give(False)
        return found

    patch(FileCopies, "_begin_read", begin)


def _look(fault, policy, folder):
    plain(Case())
    _be_slow(setattr)
    fault(setattr)
    try:
        ran = inside(Case(), 0.6, policy, host_dir=folder, allow=("swap",))
    except RuntimeError as error:
        return [str(error)]
    return simgpu.races() + differences(plain(Case()), ran)


@pytest.mark.parametrize("fault, policy", in_turn([
    writes_do_not_wait_for_the_device, reads_do_not_wait_for_writes, pieces_are_given_back_at_once]))
def test_each_fault_is_found(fault, policy, tmp_path):
    assert in_process_of_its_own(_look, fault, policy, str(tmp_path))


@pytest.mark.parametrize("call", ["write", "read"])
def test_ctrl_c_while_the_host_waits_for_the_disk_loses_nothing(call, copies, monkeypatch, slow):
    """Behind it the file has what was written, and what is read is that."""
    monkeypatch.setattr(file_copies, "_MOST", 10_000)
    sources = [torch.full((8192,), x, dtype=torch.uint8).to(SIM) for x in range(4)]
    target = torch.empty(8192, dtype=torch.uint8, device=SIM)
    copies._file.reserve(0, 4 * 8192)
    wait = concurrent.futures.wait
    count = []

    def interrupted(work):
        count.append(work)
        if len(count) == 2:
            raise KeyboardInterrupt
        return wait(work)

    def write_all():
        for i, source in enumerate(sources):
            copies.write(source, 8192 * i)

    def read_all():
        for i, source in enumerate(sources):
            copies.read(target, 8192 * i)
            assert torch.equal(target.cpu(), source.cpu())

    if call == "read":
        write_all()
        copies.settle()
    monkeypatch.setattr(concurrent.futures, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        {"write": write_all, "read": read_all}[call]()
    write_all()
    read_all()
    copies.settle()
    assert copies._pinned.taken <= 2 * 10_000
    assert simgpu.races() == []
