"""Calls that come in some steps only, between those of the model: of callbacks that log."""

import itertools

import pytest
import torch

import tidepool_torch as tidepool
from tidepool_torch.base import device
from frameworks import Tally, differences, layers, options, rows, state_of


def train(logs, budget=None):
    """(losses and logs, state); `logs(number, model, x, at_end)` is called twice in a step."""
    model = layers()
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = rows(256).tensors
    tally, seen = Tally(), []
    if budget is not None:
        budget = tidepool.fit(model, optimizer, **budget)

    def one_step(number):
        for part in range(2):
            loss = torch.nn.functional.cross_entropy(model(x[part::2]), y[part::2])
            loss.backward()
            seen.append(loss.item())
            seen.append(logs(number, model, x, part == 1))
        optimizer.step()
        optimizer.zero_grad()

    for number in range(10):
        if budget is None:
            one_step(number)
        else:
            with budget.step():
                one_step(number)
    if budget is not None:
        tally.take(budget)
        budget.close()
    return seen, state_of(model, optimizer), tally


def check(logs):
    expected, state, _ = train(logs)
    seen, inside, tally = train(logs, options())
    assert seen == expected and differences(state, inside) == []
    assert tally.moved > 0
    return tally


@pytest.mark.parametrize("when", [{1, 4, 7}, {3, 4, 8}, {0, 2, 3, 4, 5, 6, 7, 8, 9}],
                         ids=["recorded too", "not recorded", "but not recorded"])
def test_calls_on_nothing_of_the_plan_change_nothing(when):
    def logs(number, model, x, at_end):
        if number in when:
            return torch.tensor([1.0, number]).mul(2).mean().item()
        return None

    assert check(logs).divergences == 0


def test_calls_that_make_much_or_use_the_models_tensors_end_the_plan(monkeypatch):
    # The same times in each run: whether the plan moves the gradients follows from them.
    monkeypatch.setattr(device.time, "thread_time_ns", itertools.count(0, 10_000).__next__)

    def much(number, model, x, at_end):
        return torch.ones(3000).sum().item() if number == 5 else None

    def used(number, model, x, at_end):
        if number != 5 or at_end:
            return None
        return [p.grad.norm().item() for p in model.parameters()]

    def written(number, model, x, at_end):
        return torch.ones(3).add_(1).sum().item() if number == 5 else None

    assert check(much).divergences == 1
    assert check(used).divergences == 1
    assert check(written).divergences == 1


def test_a_plan_whose_steps_do_not_come_again_is_replaced():
    def logs(number, model, x, at_end):
        return torch.ones(5000).add_(1).sum().item() if number == 1 else None

    tally = check(logs)
    assert tally.divergences == 3 and tally.planned_steps == 10 - 2 - 3 - 1
