"""For the Trainer of lightning or pytorch_lightning:

    from tidepool_torch.integrations.lightning import TidepoolCallback
    trainer = Trainer(..., callbacks=[TidepoolCallback(peak="10GiB")])
"""

import sys

from .steps import Steps

# The two packages have the same Trainer; the one that the script uses is imported already.
if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback


class TidepoolCallback(Callback):
    """Takes what fit() takes. A step ends with the batch in which an optimizer stepped; validation
    and checkpoints are between steps. `budget` is the Budget of the last fit()."""

    def __init__(self, *, peak, **options):
        super().__init__()
        self._steps = Steps({"peak": peak, **options})
        self._steps_before = 0  # of the optimizers, before the open step
        self._stepped = True  # since gradients were last added to

    @property
    def budget(self):
        return self._steps.budget

    def on_train_start(self, trainer, pl_module):
        self._stepped = True
        self._steps.fit(trainer.model, trainer.optimizers)

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if self._steps.is_open:
            return
        self._steps_before = trainer.global_step
        if self._stepped and _zeroes_by_itself(pl_module):
            # Lightning does it behind the forward pass, beside gradients that nobody uses.
            for optimizer in trainer.optimizers:
                optimizer.zero_grad()
        self._stepped = False
        self._steps.begin()

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step != self._steps_before:
            self._stepped = True
            self._steps.end()

    def on_train_epoch_end(self, *_):
        self._steps.end()

    on_validation_start = on_train_epoch_end

    def on_train_end(self, *_):
        self.close()

    def on_exception(self, trainer, pl_module, exception):
        try:
            self._steps.leave(exception)
        finally:
            self.close()

    def teardown(self, trainer, pl_module, stage):
        self.close()

    def close(self):
        """Ends the budget, also of a training that was broken off."""
        self._steps.close()


def _zeroes_by_itself(module):
    name = type(module).optimizer_zero_grad.__qualname__
    return module.automatic_optimization and name.startswith("LightningModule.")
