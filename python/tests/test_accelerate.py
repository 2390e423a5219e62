"""A Budget behind accelerator.prepare(): the bits of a training without it."""

import contextlib

import pytest

accelerate = pytest.importorskip("accelerate")

import torch

import tidepool_torch as tidepool
from frameworks import Tally, differences, layers, no_mode_is_left, options, rows, state_of


class Run:
    """A script of Accelerate's with four micro-batches a step, and a budget where one is wanted."""

    def __init__(self, folder, in_budget, precision="no"):
        accelerate.state.AcceleratorState._reset_state(True)  # else its first precision stays
        self.accelerator = accelerate.Accelerator(
            gradient_accumulation_steps=4, cpu=True, mixed_precision=precision)
        model = layers()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(
            model, optimizer, torch.utils.data.DataLoader(rows(24 * 64), batch_size=64))
        self.folder = folder
        self.losses = []
        self.budget = None
        if in_budget:
            self.budget = tidepool.fit(self.model, self.optimizer, **options())

    def micro_batch(self, x, y):
        with self.accelerator.accumulate(self.model):
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
            self.accelerator.backward(loss)
            if self.accelerator.sync_gradients:
                self.accelerator.clip_grad_norm_(self.model.parameters(), 0.1)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.losses.append(loss.item())

    def train(self, first=0, save_behind=None):
        torch.manual_seed(7)
        loaded = list(self.loader)
        for number in range(first, 6):
            with self.budget.step() if self.budget else contextlib.nullcontext():
                for x, y in loaded[number * 4:number * 4 + 4]:
                    self.micro_batch(x, y)
            if number == save_behind:
                self.accelerator.save_state(str(self.folder))
        return self

    def state(self):
        return {"losses": self.losses, **state_of(self.model, self.optimizer)}

    def end(self):
        tally = Tally()
        tally.take(self.budget)
        self.budget.close()
        assert no_mode_is_left()
        return tally


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_prepared_then_fitted(tmp_path, precision):
    expected = Run(tmp_path, False, precision).train().state()
    inside = Run(tmp_path, True, precision).train()
    tally = inside.end()
    assert differences(expected, inside.state()) == []
    assert tally.moved > 0 and tally.planned_steps == 4 and tally.divergences == 0


def test_a_saved_state_loads_without_tidepool_and_goes_on_with_it(tmp_path):
    expected = Run(tmp_path / "plain", False).train(save_behind=3).state()
    inside = Run(tmp_path / "inside", True).train(save_behind=3)
    tally = inside.end()
    assert differences(expected, inside.state()) == []
    assert tally.moved > 0 and tally.planned_steps == 4

    without = Run(tmp_path, False)
    without.accelerator.load_state(str(tmp_path / "inside"))
    within = Run(tmp_path, True)
    within.accelerator.load_state(str(tmp_path / "inside"))
    assert differences(without.state(), within.state()) == []
    without.train(first=4)
    within.train(first=4)
    within.end()
    assert differences(without.state(), within.state()) == []


def test_a_state_loaded_between_planned_steps_is_the_one_that_is_trained(tmp_path):
    """The optimizer has other storages then, of which the plan does not know."""
    plain = Run(tmp_path / "plain", False).train(save_behind=3)
    inside = Run(tmp_path / "inside", True).train(save_behind=3)
    for run in (plain, inside):
        run.accelerator.load_state(str(run.folder))
        run.train()
    tally = inside.end()
    assert differences(plain.state(), inside.state()) == []
    assert tally.planned_steps >= 4 + 5


def test_state_dict_leaves_what_is_away_where_it_is(tmp_path):
    inside = Run(tmp_path, True).train()
    away = [(s, k) for s in inside.optimizer.state.values() for k, v in s.items()
            if inside.budget._bytes_of_away(v.untyped_storage()) is not None]
    assert away
    before = [id(s[k]) for s, k in away]
    saved = inside.optimizer.state_dict()
    assert [id(s[k]) for s, k in away] == before
    inside.budget.close()
    for i, state in enumerate(inside.optimizer.state.values()):
        for key, value in state.items():
            assert torch.equal(value, saved["state"][i][key])
