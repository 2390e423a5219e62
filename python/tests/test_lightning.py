"""TidepoolCallback in Lightning's Trainer: the bits of a training without it."""

import warnings

import pytest

pytest.importorskip("lightning.pytorch")

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from frameworks import Tally, bits, differences, layers, no_mode_is_left, options, rows, state_of, tallied
from tidepool_torch.integrations.lightning import TidepoolCallback

warnings.filterwarnings("ignore", module="lightning")


class Classifier(pl.LightningModule):
    fails_at = None

    def __init__(self):
        super().__init__()
        self.body = layers()
        self.losses = []

    def loss(self, batch):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.body(x), y)

    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        if self.fails_at is not None and len(self.losses) == self.fails_at:
            raise ValueError("of the user")
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val", self.loss(batch))
        self.losses.append(self.loss(batch).item())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return [optimizer], [{"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2),
                              "interval": "step"}]


class StepsByHand(Classifier):
    """Manual optimization: the user's own accumulation and two optimizers."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        self.manual_backward(loss)
        if (batch_idx + 1) % 2 == 0:
            for optimizer in self.optimizers():
                optimizer.step()
                optimizer.zero_grad()

    def configure_optimizers(self):
        return [torch.optim.SGD(self.body[:9].parameters(), lr=0.1, momentum=0.9),
                torch.optim.AdamW(self.body[9:].parameters())]


def loader(count):
    return torch.utils.data.DataLoader(rows(count), batch_size=64)


def run(folder, callbacks=(), kind=Classifier, fails_at=None, batches=24, resume=None, **changed):
    module = kind()
    module.fails_at = fails_at
    arguments = {"accumulate_grad_batches": 4, "gradient_clip_val": 0.1, "max_epochs": 1, **changed}
    trainer = pl.Trainer(
        default_root_dir=folder, accelerator="cpu", logger=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[
            ModelCheckpoint(folder, "{step}", save_top_k=-1, every_n_train_steps=3), *callbacks],
        **arguments)
    torch.manual_seed(7)
    trainer.fit(module, loader(batches * 64), loader(128), ckpt_path=resume)
    return trainer, module


def whole_state(trainer, module):
    state = {"losses": module.losses}
    for i, optimizer in enumerate(trainer.optimizers):
        state.update({f"{i} {k}": v for k, v in state_of(module, optimizer).items()})
    return state


def callback(tally, **more):
    return tallied(TidepoolCallback, tally)(**options(**more))


@pytest.mark.parametrize("case", [
    {},
    {"val_check_interval": 6},  # inside of an accumulation too
    {"batches": 11, "max_epochs": 3},  # the last step of an epoch has three micro-batches
    {"kind": StepsByHand, "accumulate_grad_batches": 1, "gradient_clip_val": None},
], ids=["plain", "validation inside", "remainder", "by hand"])
def test_a_training_in_a_budget_gives_the_bits_of_one_without(tmp_path, case):
    expected = whole_state(*run(tmp_path / "plain", **case))
    tally = Tally()
    inside = whole_state(*run(tmp_path / "inside", [callback(tally, peak="700KiB")], **case))
    assert differences(expected, inside) == []
    assert tally.moved > 0
    assert no_mode_is_left()


def test_a_plan_serves_all_steps_behind_the_recorded_one(tmp_path):
    tally = Tally()
    run(tmp_path, [callback(tally)], batches=32)
    assert tally.planned_steps == 8 - 2 and tally.divergences == 0


def test_a_checkpoint_loads_without_tidepool_and_goes_on_with_it(tmp_path):
    trainer, module = run(tmp_path / "plain")
    expected = state_of(module, trainer.optimizers[0])
    tally = Tally()
    run(tmp_path / "inside", [callback(tally)])
    checkpoint = tmp_path / "inside" / "step=3.ckpt"

    one, other = (torch.load(tmp_path / f / "step=3.ckpt", weights_only=False)
                  for f in ("plain", "inside"))
    assert all(torch.equal(v, other["state_dict"][k]) for k, v in one["state_dict"].items())
    for i, state in one["optimizer_states"][0]["state"].items():
        for key, value in state.items():
            assert torch.equal(value, other["optimizer_states"][0]["state"][i][key])

    # Dropout of the steps behind the checkpoint differs from that of an unbroken training, whose
    # random state Lightning does not save: compare both resumed ones.
    without = whole_state(*run(tmp_path / "without", resume=checkpoint))
    resumed = whole_state(*run(tmp_path / "resumed", [callback(tally)], resume=checkpoint))
    assert differences(without, resumed) == []
    assert set(expected) < {k.removeprefix("0 ") for k in resumed}
    assert tally.moved > 0


def test_a_step_that_raises_leaves_the_mode_and_all_is_on_the_device(tmp_path):
    def broken(folder, callbacks=()):
        kept = []

        class Kept(pl.Callback):
            def on_train_start(self, trainer, pl_module):
                kept.extend([trainer, pl_module, trainer.optimizers[0]])

        with pytest.raises(ValueError, match="of the user"):
            run(folder, [Kept(), *callbacks], fails_at=2 + 17, num_sanity_val_steps=2)
        return kept

    _, plain, plain_optimizer = broken(tmp_path / "plain")
    tally = Tally()
    made = callback(tally)
    _, inside, optimizer = broken(tmp_path / "inside", [made])
    assert no_mode_is_left()
    assert tally.moved > 0 and tally.planned_steps >= 1
    assert differences(state_of(plain, plain_optimizer), state_of(inside, optimizer)) == []
    for p, q in zip(plain.parameters(), inside.parameters()):
        assert p.grad is None and q.grad is None or bits(p.grad) == bits(q.grad)
    made.close()


def test_a_budget_that_is_too_small_says_so_and_leaves(tmp_path):
    with pytest.raises(MemoryError, match="smallest budget"):
        run(tmp_path, [TidepoolCallback(**{**options(), "peak": 20_000})])
    assert no_mode_is_left()


def test_the_trainer_of_pytorch_lightning_takes_the_same_callback(tmp_path):
    old = pytest.importorskip("pytorch_lightning")

    class Module(old.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = layers()
            self.losses = []

        loss, training_step = Classifier.loss, Classifier.training_step
        configure_optimizers, fails_at = Classifier.configure_optimizers, None

    def train(*callbacks):
        module = Module()
        trainer = old.Trainer(
            default_root_dir=tmp_path, accelerator="cpu", logger=False, max_epochs=1,
            enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False,
            accumulate_grad_batches=4, callbacks=list(callbacks))
        torch.manual_seed(7)
        trainer.fit(module, loader(24 * 64))
        return whole_state(trainer, module)

    expected = train()
    tally = Tally()
    assert differences(expected, train(callback(tally))) == []
    assert tally.moved > 0 and tally.planned_steps == 4 and tally.divergences == 0
