"""Plans for further shapes are made beside the steps."""

import contextlib
import signal
import threading
import time

import pytest
import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.planning import planned_beside, planner
from tidepool_torch.running import plans
from tidepool_torch.base.memory import counts
from tidepool_torch.planning.planning import machine_of
from training import Ran, Style, body, differences, state_of

STYLE = Style()
HANGS = 1000  # seconds, on a machine however busy


def fit(training, **more):
    settings = {"peak": "70%", "report": False, "time_limit": 0.5, "min_bytes": 1024,
                "machine": machine_of(2e9, 2e9, alignment=64), **more}
    return tidepool.fit(training.model, training.optimizer, **settings)


def one_step(training, n, size, step):
    x, y = training.batch(n)
    with step():
        return body(training, [(x[:, :size].clone(), y[:, :size].clone())], STYLE)


def begun(budget, training, losses, size=12):
    """Three steps of one shape, which has its plan at once, and two of another, whose plan is being
    made then."""
    for n, of in enumerate([16, 16, 16, size, size]):
        losses.append(one_step(training, n, of, budget.step))
    return budget._known_plans._beside


def wait_for(beside):
    until = time.monotonic() + HANGS
    while not beside.done and time.monotonic() < until:
        time.sleep(0.01)
    assert beside.done


def plain(sizes):
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    losses = [one_step(training, n, size, contextlib.nullcontext) for n, size in enumerate(sizes)]
    return Ran(losses, state_of(training))


def test_a_second_shape_is_planned_beside_the_steps():
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    losses = []
    with fit(training) as budget:
        beside = begun(budget, training, losses)
        assert beside is not None and len(budget._plans) == 1
        # Both shapes go on meanwhile: one by its plan, the other without, and neither is recorded.
        live = counts.live()
        losses += [one_step(training, 5, 16, budget.step), one_step(training, 6, 12, budget.step)]
        if not beside.done:
            assert counts.live() - live < 8 << 20  # the planner's memory is not this process's
        wait_for(beside)
        planned = budget.report().planned_steps
        losses += [one_step(training, n, 12, budget.step) for n in (7, 8)]
        assert len(budget._plans) == 2 and budget._plans[0].steps == 2
        assert budget.report().planned_steps == planned + 2
        moved = budget._plans[0].executor.moved_in
    assert moved > 0
    ran = Ran(losses, state_of(training))
    assert differences(plain([16, 16, 16, 12, 12, 16, 12, 12, 12]), ran) == []


def test_close_stops_it(monkeypatch):
    monkeypatch.setattr(planned_beside, "_CHILD", "import time; time.sleep(600)")
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    losses = []
    with fit(training) as budget:
        beside = begun(budget, training, losses)
        until = time.monotonic() + HANGS
        while beside._process is None and time.monotonic() < until:
            time.sleep(0.01)
        assert not beside.done
    assert beside.done and beside._process.returncode == -signal.SIGKILL
    assert "tidepool-planning" not in [t.name for t in threading.enumerate()]
    assert differences(plain([16, 16, 16, 12, 12]), Ran(losses, state_of(training))) == []


@pytest.mark.parametrize("how", ["ends", "answers nonsense"])
def test_a_planner_that_fails_is_said_and_the_next_plan_waited_for(capsys, monkeypatch, how):
    code = {"ends": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "answers nonsense": "print('no plan')"}[how]
    monkeypatch.setattr(planned_beside, "_CHILD", code)
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    losses = []
    with fit(training, report=True) as budget:
        wait_for(begun(budget, training, losses))
        losses += [one_step(training, n, 12, budget.step) for n in (5, 6)]
        assert len(budget._plans) == 2 and budget._plans[0].steps == 1
    assert "tidepool: planning beside the steps failed (" in capsys.readouterr().err
    assert differences(plain([16, 16, 16, 12, 12, 12, 12]), Ran(losses, state_of(training))) == []


def test_a_shape_without_a_plan_says_so_at_the_begin_of_a_step(monkeypatch):
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    losses = []
    budget = fit(training)
    monkeypatch.setattr(planned_beside, "_CHILD",
                        'import json; print(json.dumps({"message": "no", "smallest": 0}))')
    wait_for(begun(budget, training, losses))
    with pytest.raises(tidepool.BudgetInfeasible, match="cannot train inside|no plan"):
        with budget.step():
            raise AssertionError("not reached")
    losses.append(one_step(training, 5, 16, budget.step))
    assert len(budget._plans) == 1 and budget._plans[0].steps == 2
    budget.close()
    assert differences(plain([16, 16, 16, 12, 12, 16]), Ran(losses, state_of(training))) == []


def test_plans_that_depend_on_no_clock_are_waited_for():
    training = models.make(models.tiny_gpt)
    losses = []
    with fit(training, evaluations=20) as budget:
        assert begun(budget, training, losses) is None
        assert len(budget._plans) == 2


def let_go(budget, training, losses):
    """Steps that leave the one plan there is until it is let go, and one that is planned again."""
    for n, scale in enumerate([None] * 3 + [2.0] * 4):
        x, y = training.batch(n)
        with budget.step():
            loss = training.loss(training.model, x, y)
            loss = loss if scale is None else (loss * scale).tanh() + training.loss(
                training.model, x, y)
            loss.backward()
            training.optimizer.step()
            training.optimizer.zero_grad()
        losses.append(loss.item())


@pytest.mark.parametrize("child", ["plans", "fails"])
def test_planning_again_is_in_another_process(capsys, monkeypatch, child):
    here = []
    plan = planner.plan

    def planned_here(*arguments):
        here.append(arguments)
        return plan(*arguments)

    monkeypatch.setattr(planner, "plan", planned_here)
    if child == "fails":
        monkeypatch.setattr(planned_beside, "_CHILD", "print('no plan')")
    training = models.make(models.tiny_gpt)
    losses = []
    with fit(training, report=True) as budget:
        let_go(budget, training, losses)
        assert budget.report().plans_let_go == 1 and len(budget._plans) == 1
    assert len(here) == (1 if child == "plans" else 2)
    failed = "planning in a process of its own failed (" in capsys.readouterr().err
    assert failed == (child == "fails")


def test_the_process_that_plans_has_no_pytorch():
    assert "sys.modules['torch'] = None" in planned_beside._CHILD


def test_books_of_a_plan_are_no_part_of_the_training(monkeypatch):
    """They are known before the plan moves out more than they take."""
    size = 1 << 20
    books, noted = [], []
    training = models.make(models.tiny_gpt)
    with fit(training, peak="60%") as budget:
        make, take_in = plans.make_plan, budget._storages.take_in

        def with_books(*arguments):
            noted.append(budget._base)
            books.append(bytearray(size))
            return make(*arguments)

        def noted_take_in(*arguments):
            noted.append(budget._base)
            take_in(*arguments)

        monkeypatch.setattr(plans, "make_plan", with_books)
        monkeypatch.setattr(budget._storages, "take_in", noted_take_in)
        for n in range(2):
            one_step(training, n, 16, budget.step)
        assert noted[1] - noted[0] >= size
