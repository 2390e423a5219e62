"""For transformers' Trainer and those made from it (TRL's SFTTrainer and others):

    from tidepool_torch.integrations.transformers import TidepoolCallback
    trainer = Trainer(..., callbacks=[TidepoolCallback(peak="10GiB")])
"""

import contextlib
import sys

from transformers import TrainerCallback

from .steps import Steps, errors_told


class TidepoolCallback(TrainerCallback):
    """Takes what fit() takes. One step is one of the optimizer, with all its micro-batches;
    evaluation and checkpoints are between steps. `budget` is the Budget of the last train()."""

    def __init__(self, *, peak, **options):
        self._steps = Steps({"peak": peak, **options})
        self._forget = contextlib.ExitStack()

    @property
    def budget(self):
        return self._steps.budget

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **others):
        self.close()
        trainer = _trainer_of(self)
        # Around the model is what trains it together with other ranks, and what compiles it.
        self._steps.fit(getattr(trainer, "model_wrapped", model), optimizer)
        # A step that raises has no on_step_end. _run_epoch has the optimizer and other callbacks
        # too, in versions that have it, and nothing trains any more where it raises.
        self._forget.enter_context(errors_told(trainer, "training_step", self._steps.leave))
        self._forget.enter_context(errors_told(trainer, "_run_epoch", self._stop))

    def on_step_begin(self, args, state, control, **others):
        self._steps.begin()

    def on_step_end(self, args, state, control, **others):
        self._steps.end()

    def on_epoch_end(self, args, state, control, **others):
        self._steps.end()

    def on_train_end(self, args, state, control, **others):
        self.close()

    def close(self):
        """Ends the budget, also of a training that was broken off."""
        self._forget.close()
        self._steps.close()

    def _stop(self, error):
        try:
            self._steps.leave(error)
        finally:
            self.close()


def _trainer_of(callback):
    """Who calls the callback now: a Trainer hands itself to none of its callbacks."""
    frame = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        handler = getattr(caller, "callback_handler", None)
        if callback in getattr(handler, "callbacks", ()):
            return caller
        frame = frame.f_back
    return None
