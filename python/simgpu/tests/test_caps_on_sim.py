"""Budgets as hard limits of the allocator on "sim", and what happens where it has no room."""

import gc

import pytest
import torch

import simgpu
import tidepool_torch as tidepool
from sim_training import PLANNING, SIM, Case, Ran, differences, inside, machine, plain, state_of, values
from tidepool_torch.base import device

WHERE = device.at(SIM)
SHARE_IN_HOLES = 8


@pytest.fixture
def caps(monkeypatch):
    """The device refuses what is above a cap, as CUDA's allocator does, and counts on holes."""
    def set_share(share, where=None):
        simgpu.cap(int(share * simgpu.TOTAL))

    monkeypatch.setattr(torch.sim, "set_per_process_memory_fraction", set_share, raising=False)
    monkeypatch.setattr(WHERE, "in_holes", lambda budget: budget // SHARE_IN_HOLES)
    simgpu.segment(4096)
    simgpu.expandable(True)
    gc.collect()
    simgpu.empty_cache()
    yield
    simgpu.expandable(False)
    simgpu.segment(64 << 10)


@pytest.mark.parametrize("policy", ["eager", "random"])
@pytest.mark.parametrize("model", ["gpt", "resnet", "llama"])
def test_reserved_bytes_never_exceed_the_budget(model, policy, caps):
    case = Case(model, steps=7)
    peak = plain(case).peak
    gc.collect()
    simgpu.empty_cache()
    base = simgpu.stats()["allocated"]
    reserved = []

    def before_step(number, budget):
        if number > 0:
            reserved.append(simgpu.stats()["peak_reserved"] - base)
        simgpu.empty_cache()

    ran = inside(case, 0.85, policy, before_step=before_step)
    assert differences(plain(case), ran) == []
    assert simgpu.races() == []
    assert ran.planned_steps > 0
    assert ran.budget == int(peak * 0.85)
    assert max(reserved) <= ran.budget + 2 * 4096  # what was live before lies on whole segments


def test_holes_above_what_was_counted_on_are_planned_for(caps, monkeypatch, capfd):
    case = Case(steps=8)
    monkeypatch.setattr(WHERE, "in_holes", lambda budget: 0)
    monkeypatch.setattr(WHERE, "capped", device.HOST.capped)
    real, first = type(WHERE).holes, []

    def holes(self):
        first.append(real(self))
        return 60_000 if len(first) == 1 else 0

    monkeypatch.setattr(type(WHERE), "holes", holes)
    monkeypatch.setattr(type(WHERE), "retries", lambda self: len(first) + 2 * simgpu.stats()["kernels"])
    ran = inside(case, 0.7, report=True)
    assert "between blocks: steps are planned anew" in capfd.readouterr().err
    assert differences(plain(case), ran) == []
    assert ran.planned_steps >= 3


@pytest.mark.parametrize("left", [3, 40, 90])
def test_no_room_in_a_planned_step_leaves_the_plan(left, capfd):
    case = Case(steps=7)

    def before_step(number, budget):
        if number == 4:
            simgpu.fail_allocation(left)

    ran = inside(case, 0.6, before_step=before_step, report=True)
    assert differences(plain(case), ran) == []
    assert ran.divergences == 1
    assert "no room for it inside the budget" in capfd.readouterr().err


def test_no_room_in_a_reactive_step_lets_go_of_the_rest():
    case = Case(steps=4)

    def before_step(number, budget):
        if number == 0:
            simgpu.fail_allocation(50)

    ran = inside(case, 0.6, before_step=before_step)
    assert differences(plain(case), ran) == []


def test_auto_is_what_the_device_has_left():
    assert 0.9 * simgpu.TOTAL < WHERE.available() < simgpu.TOTAL
    model, optimizer = Case().make()
    with tidepool.fit(model, optimizer, peak="auto", report=False, machine=machine(), **PLANNING) as budget:
        assert budget.peak > 0.9 * simgpu.TOTAL


def test_links_are_measured_by_the_device():
    simgpu.rates(4e12, 2.5e10, 1000)
    model, optimizer = Case().make()
    with tidepool.fit(model, optimizer, peak="auto", report=False, **PLANNING) as budget:
        budget._known_plans.know_machine(256 << 20)
        measured = budget._known_plans._machine
    for way in ("to_host", "to_device"):
        assert measured[way]["bytes_per_second"] == pytest.approx(2.5e10, rel=0.05)
    assert measured["duplex"]


@pytest.mark.parametrize("optimizer, share", [("fused", 0.45), ("fused", 0.6), ("foreach", 0.5), ("sgd", 0.6)])
def test_blocks_in_limbo_do_not_count_twice(optimizer, share):
    """Blocks of equal sizes, a tenth of the budget each."""
    case = Case("mlp", optimizer, rows=64, clip=False)
    ran = inside(case, share, "eager")
    assert differences(plain(case), ran) == []
    assert ran.planned_steps > 0
    assert ran.divergences == 0
    assert ran.peak <= ran.budget + 16 * 512
    assert simgpu.races() == []


@pytest.mark.parametrize("left", range(2, 120, 9))
def test_no_room_at_any_place_leaves_the_plan(left):
    case = Case("mlp", "adamw", rows=64, clip=False, steps=6)
    def before_step(number, budget):
        if number == 4:
            simgpu.fail_allocation(left)

    ran = inside(case, 0.7, before_step=before_step)
    assert differences(plain(case), ran) == []


def test_tensors_of_the_host_are_no_growth():
    """A script collates its batch on the host, in the step."""
    data = torch.randn(1 << 15)

    def call(model, x):
        junk = data * 2
        assert junk.sum() != 0
        return model(x)

    ran = inside(Case(call=call), 0.6)
    assert ran.divergences == 0
    assert ran.planned_steps > 0


def test_what_belongs_on_the_device_between_steps_comes_back_above_the_cap(caps, monkeypatch):
    """The budget is so small that reactive steps end with weights away, and the cap has holes."""
    monkeypatch.setattr(WHERE, "in_holes", lambda budget: 0)
    simgpu.segment(64 << 10)
    case = Case("mlp", "adamw", rows=64, clip=False, steps=6)
    ran = inside(case, 0.5, allow=("swap",))
    assert differences(plain(case), ran) == []


def test_links_are_measured_in_what_is_left(caps):
    case = Case("mlp", "adamw", rows=64, clip=False, steps=4)
    ran = inside(case, 0.9, machine=None)
    assert differences(plain(case), ran) == []
    assert ran.planned_steps > 0


@pytest.mark.parametrize("share", ["80%", "60%"])
def test_a_share_is_held_though_steps_before_it_took_more(share, caps):
    """The allocator keeps what steps without a budget have left, above the cap, until it is asked."""
    case = Case("gpt", "adamw", steps=7)
    expected = plain(case)
    gc.collect()
    simgpu.empty_cache()
    simgpu.policy("lazy")
    base = simgpu.stats()["allocated"]
    model, optimizer = case.make()
    losses, reserved = [], []
    with tidepool.fit(model, optimizer, peak=share, report=False, machine=machine(), **PLANNING) as budget:
        for number in range(case.steps):
            batches = case.batches(number)
            simgpu.reset_peak()
            with budget.step():
                losses += case.step(model, optimizer, batches, number)
                if budget.plan is not None:
                    reserved.append(simgpu.stats()["reserved"] - base)
        assert budget.report().planned_steps >= 3
        assert max(reserved) <= budget.peak + 2 * 4096
    assert differences(expected, Ran(values(losses), state_of(model, optimizer))) == []
