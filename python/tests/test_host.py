"""Where bytes go that leave the device."""

import contextlib
import ctypes
import mmap
import os
import subprocess
import threading
import time

import pytest
import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.running import between_steps, blocks, copy_threads, executor
from tidepool_torch.base.nameless import NamelessFile, whole_pages
from tidepool_torch.planning.planning import machine_of
from training import Ran, Style, differences, inside, one_step, plain, state_of

STYLE = Style()
OPTIONS = {"evaluations": 50, "min_bytes": 1024, "machine": machine_of(2e9, 2e9, alignment=64)}


@pytest.mark.parametrize("name", models.TINY)
def test_a_file_gives_the_same_bits_and_leaves_nothing(name, tmp_path):
    build = models.TINY[name]
    ran = inside(build, 5, "60%", host_dir=str(tmp_path), **OPTIONS)
    assert differences(plain(build, 5), ran) == []
    assert ran.moved_out > 0 and ran.moved_in > 0
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_none_says_so(tmp_path):
    training = models.make(models.tiny_gpt)
    with pytest.raises(OSError, match="host_dir"):
        tidepool.fit(training.model, training.optimizer, peak="1MiB", host_dir=str(tmp_path / "no"))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path)],
                          check=False)
    if made.returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@pytest.mark.parametrize("limit", ["disk", "host"])
def test_a_full_host_tier_is_an_error_before_any_data_is_lost(limit, small_disk):
    build = models.tiny_gpt
    training = models.make(build)
    torch.manual_seed(5)
    where = {"host_dir": str(small_disk)} if limit == "disk" else {"host": 200_000}
    # Reactive steps move what the plan, made without the limit, does not.
    budget = tidepool.fit(training.model, training.optimizer, peak=300_000, report=False,
                          warm_up=100, **where, **OPTIONS)
    losses = []
    with pytest.raises(tidepool.HostTierFull, match="Next: "):
        for n in range(4):
            losses.append(one_step(training, n, STYLE, budget.step))
    budget.close()
    # The step ended at an op as plain training would, had that op raised: all is there to read.
    for parameter in training.model.parameters():
        assert torch.isfinite(parameter).all()
    for state in training.optimizer.state.values():
        assert all(torch.isfinite(v).all() for v in state.values())


def test_slow_and_late_copies_change_nothing(monkeypatch):
    """Every copy waits for a drawn while, before and behind."""
    generator = torch.Generator().manual_seed(3)
    drawn = [float(x) for x in torch.rand(8192, generator=generator) * 2e-3]
    lock = threading.Lock()

    def late(copy):
        def copied(self, i):
            with lock:
                before, behind = drawn.pop(), drawn.pop()
            time.sleep(before)
            copy(self, i)
            time.sleep(behind)
        return copied

    monkeypatch.setattr(executor.Executor, "copy", late(executor.Executor.copy))
    for name, build in models.TINY.items():
        expected = plain(build, 4)
        # All on threads, and as many as can be at once.
        for at_once in (0, 1 << 30):
            monkeypatch.setattr(copy_threads, "AT_ONCE", at_once)
            ran = inside(build, 4, "60%", **OPTIONS)
            assert differences(expected, ran) == [], name
            assert ran.moved_in > 0


def test_freed_blocks_are_not_read(monkeypatch):
    """Bytes are overwritten as soon as the runtime lets go of them."""
    end_life = blocks.Blocks.end_life

    def poisoned(self, p):
        block = self.block.get(p)
        gives_back = self.is_last_of(p)
        end_life(self, p)
        if block is not None and not gives_back:
            torch.empty(0, dtype=torch.uint8).set_(block, 0, (block.nbytes(),), (1,)).fill_(0xA5)

    monkeypatch.setattr(blocks.Blocks, "end_life", poisoned)
    for name, build in models.TINY.items():
        for speed in (1e5, 2e9):
            more = {**OPTIONS, "machine": machine_of(speed, speed, alignment=64)}
            ran = inside(build, 4, "60%", **more)
            assert differences(plain(build, 4), ran) == [], (name, speed)
            assert ran.moved_in + ran.reruns > 0


def test_live_bytes_at_the_start_of_steps_are_constant():
    from tidepool_torch.base.memory import counts, hook_is_loaded
    if not hook_is_loaded():
        pytest.skip("the allocator hook is not preloaded")
    training = models.make(models.tiny_gpt)
    budget = tidepool.fit(training.model, training.optimizer, peak="60%", report=False, **OPTIONS)
    live = []
    for n in range(24):
        live.append(counts.live())
        one_step(training, n, STYLE, budget.step)
    budget.close()
    assert max(live[4:]) - min(live[4:]) < 64 << 10


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("size", [1, 4096, 5000, (2 << 20) + 1, (5 << 20) + 513])
def test_what_was_written_is_read(direct, size, tmp_path):
    file = NamelessFile(str(tmp_path), direct)
    before = torch.randint(256, (size + 64,), dtype=torch.uint8)[64:]
    after = torch.zeros(size + 64, dtype=torch.uint8)[64:]
    beside = torch.randint(256, (4096,), dtype=torch.uint8)
    start = whole_pages(size)
    file.reserve(0, 2 * start + 4096)
    file.write(beside.data_ptr(), 4096, 2 * start)
    file.write(before.data_ptr(), size, start)
    file.read(after.data_ptr(), size, start)
    assert torch.equal(before, after)
    again = torch.zeros(4096, dtype=torch.uint8)
    file.read(again.data_ptr(), 4096, 2 * start)
    assert torch.equal(again, beside)
    file.close()
    assert os.listdir(tmp_path) == []


def pages_in_cache(number, size):
    mapped = mmap.mmap(number, size)
    pages = (ctypes.c_ubyte * (size // 4096))()
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), pages) == 0
    return sum(page & 1 for page in pages)


def test_pages_of_no_cache_are_taken(tmp_path):
    """What a file holds is not in memory, where the file system moves bytes directly."""
    file = NamelessFile(str(tmp_path))
    if not file.direct:
        pytest.skip("the file system of the temporary folder has no direct transfers")
    size = 64 << 20
    block = torch.zeros(size, dtype=torch.uint8)
    file.reserve(0, size)
    file.write(block.data_ptr(), size, 0)
    assert pages_in_cache(file.number, size) < 16


def test_a_host_tier_that_is_too_small_for_any_plan_is_named():
    with pytest.raises(tidepool.BudgetInfeasible, match=r"inside .* with host=58.6 KiB .*Next: a "
                       "larger host="):
        inside(models.tiny_gpt, 3, "60%", host=60_000, **OPTIONS)


@pytest.mark.parametrize("leave", ["close", "resident"])
def test_a_budget_with_a_full_host_tier_can_be_left(leave):
    """What is away comes back at once, without a second place on the host."""
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    options = {"peak": "60%", "report": False, "evaluations": 100, "min_bytes": 1024,
               "machine": machine_of(1e9, 1e9, alignment=64), "home": False}
    with tidepool.fit(training.model, training.optimizer, **options) as budget:
        losses = [one_step(training, n, Style(), budget.step) for n in range(4)]
        needs = budget.plan.host_bytes
    budget = tidepool.fit(training.model, training.optimizer, host=needs + 4096, **options)
    losses += [one_step(training, n, Style(), budget.step) for n in range(4, 8)]
    assert budget.report().planned_steps > 0
    assert budget._tier.taken > needs // 2
    with budget.resident() if leave == "resident" else contextlib.closing(budget):
        pass
    losses += [one_step(training, n, Style(), budget.step if leave == "resident" else contextlib.nullcontext)
               for n in range(8, 10)]
    budget.close()
    assert differences(plain(models.tiny_gpt, 10, Style()), Ran(losses, state_of(training))) == []


class _Stopped(Exception):
    pass


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("more", [100_000, 220_000])
def test_a_step_that_stops_with_a_full_host_tier_loses_nothing(where, more, capfd):
    """What has no second place on the host comes back to the device, and that is said."""
    options = {"peak": "60%", "evaluations": 100, "min_bytes": 1024, "home": False,
               "machine": machine_of(1e9, 1e9, alignment=64)}

    def stop(training, begin):
        x, y = training.batch(90)
        with pytest.raises(_Stopped), begin():
            loss = training.loss(training.model, x, y)
            if where == "backward":
                loss.backward()
            raise _Stopped

    training, expected = models.make(models.tiny_gpt), models.make(models.tiny_gpt)
    torch.manual_seed(5)
    with tidepool.fit(training.model, training.optimizer, **options) as budget:
        losses = [one_step(training, n, Style(), budget.step) for n in range(4)]
        needs = budget.plan.host_bytes
    with tidepool.fit(training.model, training.optimizer, host=needs + more, **options) as budget:
        losses += [one_step(training, n, Style(), budget.step) for n in range(4, 8)]
        assert budget.report().planned_steps > 0
        stop(training, budget.step)
    there = Ran(losses, state_of(training))
    torch.manual_seed(5)
    losses = [one_step(expected, n, Style()) for n in range(8)]
    stop(expected, contextlib.nullcontext)
    assert differences(Ran(losses, state_of(expected)), there) == []
    assert "could not be left as a whole" not in capfd.readouterr().err


def test_behind_a_plan_that_could_not_be_left_no_step_begins_and_close_brings_all_back(monkeypatch):
    training, expected = models.make(models.tiny_gpt), models.make(models.tiny_gpt)
    torch.manual_seed(5)
    budget = tidepool.fit(training.model, training.optimizer, peak="60%", evaluations=100, min_bytes=1024,
                          home=False, report=False, machine=machine_of(1e9, 1e9, alignment=64))
    losses = [one_step(training, n, Style(), budget.step) for n in range(4)]

    def fail(*_):
        raise OSError(5, "the disk fails")

    x, y = training.batch(4)
    with monkeypatch.context() as broken:
        broken.setattr(between_steps, "land", fail)
        with pytest.raises(KeyError), budget.step():
            training.loss(training.model, x, y)
            raise KeyError
    with pytest.raises(tidepool.TidepoolError, match=r"could not be left.*the disk fails.*Next: close\(\)"):
        one_step(training, 4, Style(), budget.step)
    budget.close()
    there = Ran(losses, state_of(training))
    torch.manual_seed(5)
    losses = [one_step(expected, n, Style()) for n in range(4)]
    expected.loss(expected.model, *expected.batch(4))
    assert differences(Ran(losses, state_of(expected)), there) == []
