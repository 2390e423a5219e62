"""How long planning may take, and plans that a longer search beside the steps has found."""

import time

import pytest
import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.base import primitives
from tidepool_torch.planning import planner
from tidepool_torch.planning.planning import machine_of, make_plan_soon
from tidepool_torch.running import planning_time
from tidepool_torch.running.planning_time import PlanningTime
from tidepool_torch.running.prediction import Prediction
from training import Ran, Style, differences, one_step, plain, state_of


def test_steps_wait_for_a_tenth_of_what_they_took():
    worth = PlanningTime(10)
    assert worth.first() == 0.2
    worth.add_step(30)
    assert worth.first() == 3
    worth.add_step(300)
    assert worth.first() == 10
    assert PlanningTime(0.05).first() == 0.05


def test_longer_searches_take_a_tenth_of_the_steps_together():
    worth = PlanningTime(10)
    worth.add_step(7.9)
    assert worth.longer_than(0.2) is None
    worth.add_step(0.2)
    assert worth.longer_than(0.2) == 0.8
    worth.spend(0.8)
    worth.add_step(30)
    assert worth.longer_than(0.8) is None
    worth.add_step(5)
    assert worth.longer_than(0.8) == 3.2
    assert worth.longer_than(10) is None


@pytest.mark.parametrize("better, gains", [
    (Prediction(0.98, 2.0, 1.0), True), (Prediction(1.0, 1.9, 1.0), True), (Prediction(1.0, 2.0, 1.0), False),
    (Prediction(1.001, 1.0, 1.0), False), (Prediction(0.995, 2.0, 1.0), False),
    (Prediction(0.98, None, 1.0), True), (Prediction(1.0, None, 1.0), False)])
def test_what_is_worth_another_plan(better, gains):
    assert better.gains_on(Prediction(1.0, 2.0, 1.0)) == gains


def test_where_a_short_search_finds_none_a_longer_one_is_made(monkeypatch):
    limits = []

    def plan(program, machine, budget, host, options):
        limits.append(options.time_limit)
        if options.time_limit < 5:
            raise tidepool.BudgetInfeasible("not in this time", 0)
        return "a plan"

    monkeypatch.setattr("tidepool_torch.planning.planning.make_plan",
                        lambda *arguments: plan(*arguments[:2], 0, None, arguments[4]))
    assert make_plan_soon(None, None, 1, None, planner.Options(time_limit=7), 0.2) == "a plan"
    assert limits == [0.2, 7]


@pytest.mark.skipif(primitives.SWAPS_ONLY, reason="one plan is as good as another there")
@pytest.mark.parametrize("is_better, host, plans_that_ran", [
    (True, None, 3), (False, None, 1), (True, "300KiB", 1)], ids=["better", "not better", "no room for two"])
def test_a_better_plan_takes_the_place_of_the_first(is_better, host, plans_that_ran, monkeypatch, capfd):
    monkeypatch.setattr(planning_time, "_SHARE", 100.0)
    monkeypatch.setattr(PlanningTime, "first", lambda self: 0.1)
    monkeypatch.setattr(Prediction, "may_gain", lambda self: True)
    monkeypatch.setattr(Prediction, "gains_on", lambda self, other: is_better)
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    losses, plans = [], []
    with tidepool.fit(training.model, training.optimizer, peak="60%", time_limit=0.5, min_bytes=1024, host=host,
                      machine=machine_of(1e9, 1e9, alignment=64)) as budget:
        for n in range(40):
            losses.append(one_step(training, n, Style(), budget.step))
            plans += budget._plans[:1] if budget._plans and budget._plans[0] not in plans else []
            beside = budget._known_plans._beside
            until = time.monotonic() + 60
            while beside is not None and not beside.done and time.monotonic() < until:
                time.sleep(0.01)
        report = budget.report()
        assert len(plans) == plans_that_ran
        assert [p.searched for p in plans][-1] == 0.5
        assert report.planned_steps == 38
        assert report.divergences == 0
        assert report.moved_out > 0
    assert differences(plain(models.tiny_gpt, 40, Style()), Ran(losses, state_of(training))) == []
    assert ("a better plan (predicted until now" in capfd.readouterr().err) == (plans_that_ran > 1)
