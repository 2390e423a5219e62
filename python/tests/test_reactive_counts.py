"""Reactive steps ask rarely for live bytes where that takes long, and keep the budget all the same."""

import pytest
import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.base.memory import counts, hook_is_loaded
from tidepool_torch.planning.planning import machine_of
from tidepool_torch.running import reactive
from training import Ran, Style, differences, one_step, plain, state_of


def gpt():
    model = models.GPT(vocabulary=256, width=96, layers=3, length=64)
    return models.Training(model, torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False),
                           models._tokens(8, 64, 256), models._next_tokens)


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_the_budget_is_kept_with_fewer_questions(share, monkeypatch):
    name, steps = gpt, 6
    expected = plain(name, steps, Style())
    training = models.make(name)
    torch.manual_seed(5)
    with tidepool.fit(training.model, training.optimizer, peak="100%", report=False, evaluations=50,
                      min_bytes=1024) as budget:
        for n in range(3):
            one_step(training, n, Style(), budget.step)
        whole = budget.peak

    monkeypatch.setattr(type(counts), "is_slow", True)
    training = models.make(name)
    torch.manual_seed(5)
    asked, ops = [], []
    live, run = counts.live, reactive.Reactive.run
    monkeypatch.setattr(counts, "live", lambda: (asked.append(1), live())[1])
    monkeypatch.setattr(reactive.Reactive, "run", lambda self, *call: (ops.append(1), run(self, *call))[1])
    losses, peaks = [], []
    # None of these steps is recorded.
    with tidepool.fit(training.model, training.optimizer, peak=int(whole * share), report=False, warm_up=99,
                      min_bytes=1024, machine=machine_of(1e9, 1e9, alignment=64)) as budget:
        base = budget._base
        for n in range(steps):
            if hook_is_loaded():
                counts.forget_highest()
            asked.clear(), ops.clear()
            losses.append(one_step(training, n, Style(), budget.step))
            peaks.append(counts.highest() - base if hook_is_loaded() else 0)
        assert budget._away.moved_out > 0
        assert len(asked) < len(ops) / 3
        assert max(peaks[1:]) <= budget.peak
    assert differences(expected, Ran(losses, state_of(training))) == []


def test_what_kinds_of_calls_need_is_bounded(monkeypatch):
    monkeypatch.setattr(reactive, "_MOST_KINDS", 10)
    one = reactive.Reactive(None, None, None, 1024)
    add = torch.ops.aten.add.Tensor
    for n in range(1, 100):
        x = torch.ones(n)
        assert one._need(reactive._kind_of(add, (x, x), {}, [x, x]), add, (x, x), {}, [x, x]) == 4 * n
        one._learn((n,), 0)
    assert len(one._sizes) <= 10
    assert len(one._keep_nothing) <= 10


@pytest.mark.skipif(not hook_is_loaded(), reason="live bytes are not known to the byte")
@pytest.mark.parametrize("make", [
    lambda x: x.repeat(8, 1), lambda x: torch.nn.functional.pad(x, (0, 7 * x.shape[1])), lambda x: x.nonzero(),
    lambda x: x.to(torch.float64)], ids=["repeat", "pad", "nonzero", "to"])
def test_sizes_that_other_arguments_or_values_decide_are_counted(make, monkeypatch):
    monkeypatch.setattr(type(counts), "is_slow", True)
    model = torch.nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(512, 256)
    with tidepool.fit(model, optimizer, peak="24MiB", report=False, warm_up=99, min_bytes=1024) as budget:
        counts.forget_highest()
        with budget.step():
            kept = [make(model(x).detach()) for _ in range(40)]
            most = counts.highest() - budget._base
        assert sum(k.untyped_storage().nbytes() for k in kept) >= 40 << 20
        assert most <= budget.peak
        assert budget._away.moved_out > 0
