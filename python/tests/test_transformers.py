"""TidepoolCallback in transformers' Trainer: the bits of a training without it."""

import glob
import os

import pytest

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import torch

import tidepool_torch as tidepool
from frameworks import Tally, differences, no_mode_is_left, options, state_of, tallied
from tidepool_torch.integrations.transformers import TidepoolCallback


class Data(torch.utils.data.Dataset):
    def __init__(self, rows, length=16):
        self.ids = torch.randint(0, 64, (rows, length), generator=torch.Generator().manual_seed(3))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


def model(width=32):
    torch.manual_seed(1)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=64, n_positions=16, n_embd=width, n_layer=2, n_head=2))


def trainer(folder, callbacks=(), rows=96, made=None, kind=transformers.Trainer, **changed):
    arguments = {
        "per_device_train_batch_size": 4, "gradient_accumulation_steps": 4, "num_train_epochs": 1,
        "max_grad_norm": 0.1, "learning_rate": 1e-3, "logging_steps": 1, "save_steps": 3,
        "eval_strategy": "steps", "eval_steps": 2, "report_to": [], "disable_tqdm": True,
        "use_cpu": True, "seed": 7, **changed}
    return kind(
        model=made or model(), args=transformers.TrainingArguments(str(folder), **arguments),
        train_dataset=Data(rows), eval_dataset=Data(8), callbacks=list(callbacks))


def logged(trained):
    """Losses, gradient norms and evaluations, without times."""
    return [{k: v for k, v in row.items() if "runtime" not in k and "per_second" not in k}
            for row in trained.state.log_history]


def test_a_training_in_a_budget_gives_the_bits_of_one_without(tmp_path):
    plain = trainer(tmp_path / "plain")
    plain.train()
    expected = state_of(plain.model, plain.optimizer.optimizer)

    tally = Tally()
    inside = trainer(tmp_path / "inside", [tallied(TidepoolCallback, tally)(**options())])
    inside.train()

    assert differences(expected, state_of(inside.model, inside.optimizer.optimizer)) == []
    assert logged(plain) == logged(inside)
    assert tally.moved > 0 and tally.planned_steps == 4 and tally.divergences == 0
    assert no_mode_is_left()


def test_a_checkpoint_loads_without_tidepool_and_goes_on_with_it(tmp_path):
    plain = trainer(tmp_path / "plain")
    plain.train()
    expected = state_of(plain.model, plain.optimizer.optimizer)
    tally = Tally()
    trainer(tmp_path / "inside", [tallied(TidepoolCallback, tally)(**options())]).train()
    checkpoint = str(tmp_path / "inside" / "checkpoint-3")

    without = trainer(tmp_path / "without")
    without.train(resume_from_checkpoint=checkpoint)
    assert differences(expected, state_of(without.model, without.optimizer.optimizer)) == []

    resumed = trainer(tmp_path / "resumed", [tallied(TidepoolCallback, tally)(**options())])
    resumed.train(resume_from_checkpoint=checkpoint)
    assert differences(expected, state_of(resumed.model, resumed.optimizer.optimizer)) == []
    assert tally.moved > 0 and tally.planned_steps == 4 + 1


def files_of(folder):
    return sorted(os.path.relpath(f, folder) for f in glob.glob(f"{folder}/**/*", recursive=True))


def test_a_checkpoint_has_the_same_tensors_whether_they_are_away_or_not(tmp_path):
    trainer(tmp_path / "plain").train()
    trainer(tmp_path / "inside", [TidepoolCallback(**options())]).train()
    assert files_of(tmp_path / "plain") == files_of(tmp_path / "inside")
    for name in ("checkpoint-3", "checkpoint-6"):
        one, other = (torch.load(tmp_path / f / name / "optimizer.pt") for f in ("plain", "inside"))
        for i, state in one["state"].items():
            for key, value in state.items():
                assert torch.equal(value, other["state"][i][key])
        one, other = ((tmp_path / f / name / "model.safetensors").read_bytes()
                      for f in ("plain", "inside"))
        assert one == other


def test_weights_that_come_from_a_file_move_too(tmp_path):
    """PyTorch says of what from_pretrained() reads that it cannot be resized."""
    model().save_pretrained(tmp_path / "model")

    def loaded():
        return transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "model")

    plain = trainer(tmp_path / "plain", made=loaded(), save_strategy="no")
    plain.train()
    pinned = []

    class Looks(tallied(TidepoolCallback, Tally())):
        def on_epoch_end(self, *args, **others):
            super().on_epoch_end(*args, **others)
            pinned.append([t.name for t in self.budget._plans[0].program.tensors
                           if t.persistent and t.pinned])

    inside = trainer(tmp_path / "inside", [Looks(**options())], made=loaded(), save_strategy="no")
    inside.train()
    assert differences(state_of(plain.model, plain.optimizer.optimizer),
                       state_of(inside.model, inside.optimizer.optimizer)) == []
    assert pinned == [[]]


class Failing(transformers.Trainer):
    """Raises in a micro-batch, or in the optimizer's step."""

    fails_in = None
    calls = 0

    def compute_loss(self, *args, **kwargs):
        self.calls += 1
        if self.fails_in == "loss" and self.calls == 14:
            raise ValueError("of the user")
        return super().compute_loss(*args, **kwargs)


class FailsBeforeTheOptimizer(transformers.TrainerCallback):
    def on_pre_optimizer_step(self, args, state, control, **others):
        if state.global_step == 4:
            raise ValueError("of the user")


@pytest.mark.parametrize("where", ["micro-batch", "optimizer"])
def test_a_step_that_raises_leaves_the_mode_and_all_is_on_the_device(tmp_path, where):
    def broken(folder, *callbacks):
        made = trainer(folder, callbacks, kind=Failing, save_strategy="no")
        if where == "micro-batch":
            made.fails_in = "loss"
        else:
            made.add_callback(FailsBeforeTheOptimizer())
        with pytest.raises(ValueError, match="of the user"):
            made.train()
        return made

    plain = broken(tmp_path / "plain")
    tally = Tally()
    callback = tallied(TidepoolCallback, tally)(**options())
    inside = broken(tmp_path / "inside", callback)
    assert no_mode_is_left()
    assert tally.moved > 0 and tally.planned_steps >= 1
    assert differences(state_of(plain.model, plain.optimizer.optimizer),
                       state_of(inside.model, inside.optimizer.optimizer)) == []
    for p, q in zip(plain.model.parameters(), inside.model.parameters()):
        assert (p.grad is None) == (q.grad is None)
        assert p.grad is None or torch.equal(p.grad, q.grad)
    callback.close()
    callback.close()
    assert "training_step" not in vars(inside) and "_run_epoch" not in vars(inside)


def test_train_again_after_an_error(tmp_path):
    tally = Tally()
    inside = trainer(tmp_path / "inside", [tallied(TidepoolCallback, tally)(**options())],
                     kind=Failing, save_strategy="no")
    inside.fails_in = "loss"
    with pytest.raises(ValueError, match="of the user"):
        inside.train()
    inside.fails_in = None
    inside.train()
    assert tally.planned_steps >= 1 + 4
    assert no_mode_is_left()


def test_a_last_step_with_fewer_micro_batches(tmp_path):
    """Eleven batches an epoch: the third step of each has three of four micro-batches."""
    changed = {"rows": 44, "num_train_epochs": 3, "save_strategy": "no"}
    plain = trainer(tmp_path / "plain", **changed)
    plain.train()
    tally = Tally()
    inside = trainer(tmp_path / "inside", [tallied(TidepoolCallback, tally)(**options())],
                     **changed)
    inside.train()
    assert differences(state_of(plain.model, plain.optimizer.optimizer),
                       state_of(inside.model, inside.optimizer.optimizer)) == []
    assert logged(plain) == logged(inside)
    assert tally.moved > 0


def test_a_budget_that_is_too_small_says_so_and_leaves(tmp_path):
    inside = trainer(tmp_path / "inside", [TidepoolCallback(**{**options(), "peak": 20_000})])
    with pytest.raises(MemoryError, match="smallest budget"):
        inside.train()
    assert no_mode_is_left()


def test_a_compiled_model_is_refused(tmp_path):
    inside = trainer(tmp_path, [TidepoolCallback(**options())], torch_compile=True)
    with pytest.raises(tidepool.TidepoolError, match="torch.compile"):
        inside.train()
    assert no_mode_is_left()
