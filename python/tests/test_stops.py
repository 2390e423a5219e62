"""A step that ends early, or is another than the recorded one: nothing is lost, nothing is wrong."""

import contextlib
import os
import signal
import threading

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import models
import tidepool_torch as tidepool
from tidepool_torch.planning.planning import machine_of
from training import Style, body, differences, one_step, plain, state_of, Ran

STYLE = Style()


class StopAt(TorchDispatchMode):
    """Raises in place of the n-th call."""

    def __init__(self, calls_before, error):
        super().__init__()
        self._left = calls_before
        self._error = error

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self._left -= 1
        if self._left < 0:
            raise self._error()
        return func(*args, **(kwargs or {}))


def fit(training, link=1e6, peak="60%", **more):
    return tidepool.fit(training.model, training.optimizer, peak=peak, report=False,
                        evaluations=200, min_bytes=1024, 
                        machine=machine_of(link, link, alignment=64), **more)


def stopped(build, calls_before, inside_a_budget, link):
    training = models.make(build)
    torch.manual_seed(5)
    budget = fit(training, link) if inside_a_budget else None
    step = budget.step if budget else contextlib.nullcontext
    for n in range(3):
        one_step(training, n, STYLE, step)
    batch = training.batch(30)
    with pytest.raises(KeyboardInterrupt):
        with step(), StopAt(calls_before, KeyboardInterrupt):
            body(training, [batch], STYLE)
    moved = 0
    if budget:
        executor = budget._plans[0].executor
        moved = executor.moved_in + executor.reruns
        budget.close()
    state = state_of(training)
    # Trains on: what is left is whole.
    with contextlib.nullcontext():
        training.optimizer.zero_grad(set_to_none=True)
    losses = [one_step(training, 4, STYLE)]
    return Ran(losses, {**state, **{f"later {k}": v for k, v in state_of(training).items()}}), moved


def places(name, first, count, of):
    """Every second of so many places in a step, of every second model the others; all with
    TIDEPOOL_ATTACKS."""
    all_places = list(range(first, count, max(1, count // of)))
    if "TIDEPOOL_ATTACKS" in os.environ:
        return all_places
    return all_places[list(models.TINY).index(name) % 2::2]


@pytest.mark.parametrize("link", [1e5, 2e9])
@pytest.mark.parametrize("name", models.TINY)
def test_an_exception_at_any_op_leaves_what_plain_training_has(name, link):
    build = models.TINY[name]
    count = calls_of_a_step(build)
    moved = 0
    for calls_before in places(name, 3, count, 12):
        expected, _ = stopped(build, calls_before, False, link)
        ran, more = stopped(build, calls_before, True, link)
        moved += more
        assert differences(expected, ran) == [], calls_before
    assert moved > 0


def calls_of_a_step(build):
    training = models.make(build)
    one_step(training, 0, STYLE)

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Count.calls += 1
            return func(*args, **(kwargs or {}))

    one_step(training, 1, STYLE, Count)
    return Count.calls


@pytest.mark.parametrize("link", [1e5, 2e7, 2e9])
@pytest.mark.parametrize("name", ["resnet", "gpt"])
def test_a_step_of_another_shape_is_served_without_the_plan(name, link):
    """Smaller batches now and then, as at the end of an epoch."""
    build = models.TINY[name]
    counts = [0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0]

    def run(inside_a_budget):
        training = models.make(build)
        torch.manual_seed(5)
        budget = fit(training, link, peak="60%") if inside_a_budget else None
        step = budget.step if budget else contextlib.nullcontext
        losses = []
        for n, smaller in enumerate(counts):
            x, y = training.batch(n)
            if smaller:
                x, y = x[:-1].clone(), y[:-1].clone()
            with step():
                losses.append(body(training, [(x, y)], STYLE))
        plans = len(budget._plans) if budget else 0
        if budget:
            budget.close()
        return Ran(losses, state_of(training)), plans

    expected, _ = run(False)
    ran, plans = run(True)
    assert differences(expected, ran) == []
    assert plans == 2


@pytest.mark.parametrize("link", [1e5, 2e7, 2e9])
@pytest.mark.parametrize("name", models.TINY)
def test_a_step_that_leaves_the_plan_in_the_middle_goes_on_without(name, link):
    """Ops more than recorded, one of which writes, at each of several places; the next steps are planned again."""
    build = models.TINY[name]
    count = calls_of_a_step(build)

    class OneMore(TorchDispatchMode):
        """Makes a call of its own before the n-th."""

        def __init__(self, before):
            super().__init__()
            self._left = before

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self._left -= 1
            if self._left == 0:
                torch.ones(3).add_(1)
            return func(*args, **(kwargs or {}))

    for before in places(name, 5, count, 8):
        def run(inside_a_budget):
            training = models.make(build)
            torch.manual_seed(5)
            budget = fit(training, link) if inside_a_budget else None
            step = budget.step if budget else contextlib.nullcontext
            losses = [one_step(training, n, STYLE, step) for n in range(3)]
            batch = training.batch(30)
            with step(), OneMore(before):
                losses.append(body(training, [batch], STYLE))
            losses += [one_step(training, n, STYLE, step) for n in (4, 5)]
            if budget:
                assert budget.divergences == 1
                assert budget._plans[0].steps == 3
                budget.close()
            return Ran(losses, state_of(training))

        assert differences(run(False), run(True)) == [], before


def test_ctrl_c_in_a_step_waits_for_the_op_and_leaves_all_whole():
    build = models.TINY["gpt"]

    class Signal(TorchDispatchMode):
        def __init__(self, before):
            super().__init__()
            self._left = before

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self._left -= 1
            if self._left == 0:
                signal.raise_signal(signal.SIGINT)
            return func(*args, **(kwargs or {}))

    training = models.make(build)
    torch.manual_seed(5)
    handler = signal.getsignal(signal.SIGINT)
    with fit(training) as budget:
        for n in range(3):
            one_step(training, n, STYLE, budget.step)
        with pytest.raises(KeyboardInterrupt):
            with budget.step(), Signal(40):
                body(training, [training.batch(30)], STYLE)
        assert signal.getsignal(signal.SIGINT) is handler
        training.optimizer.zero_grad(set_to_none=True)
        one_step(training, 4, STYLE, budget.step)


def test_steps_are_not_nested_and_a_closed_budget_says_so():
    training = models.make(models.TINY["gpt"])
    budget = fit(training)
    with pytest.raises(tidepool.TidepoolError, match="inside another step"):
        with budget.step():
            with budget.step():
                pass
    budget.close()
    budget.close()
    with pytest.raises(tidepool.TidepoolError, match="was closed"):
        with budget.step():
            pass


def test_steps_of_two_budgets_are_not_nested_and_run_one_behind_the_other():
    def trainings():
        made = [models.make(models.TINY["gpt"]) for _ in range(2)]
        torch.manual_seed(5)
        return made

    pair = trainings()
    expected = [[one_step(training, n, STYLE) for training in pair] for n in range(4)]
    first, second = trainings()
    losses = []
    with fit(first) as outer, fit(second) as inner:
        for n in range(4):
            with pytest.raises(tidepool.TidepoolError, match="inside another step, of another"):
                with outer.step():
                    with inner.step():
                        raise AssertionError("it began")
            losses.append([one_step(first, n, STYLE, outer.step),
                           one_step(second, n, STYLE, inner.step)])
        assert outer.report().moved_in > 0 and inner.report().moved_in > 0
    assert losses == expected


def test_a_step_in_another_thread_is_refused_while_one_runs():
    training, other = (models.make(models.TINY["gpt"]) for _ in range(2))
    errors = []

    def train(budget):
        try:
            one_step(other, 0, STYLE, budget.step)
        except tidepool.TidepoolError as error:
            errors.append(str(error))

    def in_a_thread(budget):
        thread = threading.Thread(target=train, args=(budget,))
        thread.start()
        thread.join()

    with fit(training) as outer, fit(other) as inner:
        with outer.step():
            in_a_thread(inner)
            in_a_thread(outer)
        assert [e.partition(":")[0] for e in errors] == ["a step runs in another thread"] * 2
        in_a_thread(inner)  # no step runs any more
        assert len(errors) == 2 and inner.steps == 1


def test_plain_steps_behind_a_close_go_on():
    build = models.TINY["gpt"]
    training = models.make(build)
    torch.manual_seed(5)
    budget = fit(training)
    losses = [one_step(training, n, STYLE, budget.step) for n in range(4)]
    budget.close()
    losses += [one_step(training, n, STYLE) for n in range(4, 6)]
    assert differences(plain(build, 6), Ran(losses, state_of(training))) == []


def test_a_budget_that_nobody_holds_brings_everything_back(capsys):
    """Regression: one made inside of a training function took the optimizer's state with it."""
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)

    def train():
        budget = tidepool.fit(training.model, training.optimizer, peak="60%", evaluations=200,
                              min_bytes=1024, machine=machine_of(1e9, 1e9, alignment=64))
        losses = [one_step(training, n, STYLE, budget.step) for n in range(4)]
        assert budget._away or budget._storages.current is not None
        return losses

    losses = train()
    assert "went out of scope without close()" in capsys.readouterr().err
    losses += [one_step(training, n, STYLE) for n in range(4, 6)]
    assert differences(plain(models.tiny_gpt, 6, STYLE), Ran(losses, state_of(training))) == []
    tidepool.fit(training.model, training.optimizer, peak="60%", report=False).close()
