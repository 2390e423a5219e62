"""`tidepool-torch run --verify`: the same script without a budget and in it, step by step the same?"""

from __future__ import annotations

import contextlib
import hashlib
import json

import torch

from ..base import device
from ..base.primitives import storage_of


class Enough(BaseException):
    """The script has made as many steps as were asked for."""


class NoBudget:
    """Stands where a Budget does in the plain run."""

    peak = 0
    _away = ()

    def __init__(self, model, optimizers):
        pass

    def step(self):
        return contextlib.nullcontext(self)

    def close(self):
        pass

    def _set_base(self, base):
        pass

    def _bytes_of_away(self, storage):
        return None


class Evidence:
    """Digests of everything that a step can change, behind each step; and the losses."""

    def __init__(self, path, steps):
        self._path = path
        self._most = steps
        self._steps = []
        self._losses = []

    def watch_losses(self):
        """What backward() is called on, where it is a number."""
        backward = torch.autograd.backward

        def noted(tensors, *args, **kwargs):
            for tensor in [tensors] if isinstance(tensors, torch.Tensor) else tensors:
                if tensor.numel() == 1:
                    self._losses.append(float(tensor.detach().item()).hex())
            return backward(tensors, *args, **kwargs)

        torch.autograd.backward = noted

    def note(self, cutter):
        budget = cutter.watched.budget
        digests = {name: _digest(tensor, budget) for name, tensor in cutter.tensors()}
        digests["random state"] = _digest(device.HOST.random_state(), budget)
        self._steps.append({"losses": self._losses, "digests": digests})
        self._losses = []
        if len(self._steps) >= self._most:
            raise Enough

    def write(self, cutter):
        from .run_report import RunReport
        figures = {"measured": cutter.peak}
        if not isinstance(getattr(cutter.watched, "budget", None), (NoBudget, type(None))):
            figures = RunReport(cutter).figures()
        with open(self._path, "w", encoding="utf-8") as file:
            json.dump({"steps": self._steps[:self._most], "figures": figures}, file)


def _digest(tensor, budget):
    with torch.no_grad():
        whole = tensor.detach()
        copy = budget._bytes_of_away(storage_of(whole))
        if copy is not None:
            whole = torch.empty(0, dtype=tensor.dtype, device=copy.device).set_(
                copy, tensor.storage_offset(), tensor.size(), tensor.stride())
        # A clone: numpy pins the storage that it looks at.
        flat = whole.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)
        return hashlib.sha256(flat.cpu().numpy()).hexdigest()
