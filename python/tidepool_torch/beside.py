"""What a process holds that is not of the training."""

import gc

import torch

from .memory import counts
from .primitives import StorageWeakRef, storage_of


def storages_in_python():
    """Storages of every tensor in memory that Python knows, each once."""
    found = {}
    for tensor in [o for o in gc.get_objects() if type(o) in (torch.Tensor, torch.nn.Parameter)]:
        if tensor.device.type == "cpu" and tensor.layout == torch.strided:
            found[storage_of(tensor)._cdata] = storage_of(tensor)
    return found.values()


class Beside:
    """`base` are live bytes of other things than the training: `held`, storages, and `more` bytes
    are of the training."""

    def __init__(self, held, more):
        mine = {s._cdata: s.nbytes() for s in held}
        self._more = more
        self._others = {s._cdata: StorageWeakRef(s) for s in storages_in_python()
                        if s._cdata not in mine}
        self.base = counts.live() - sum(mine.values()) - more
        self.kept_by_kernels = 0

    def look_again(self, is_away):
        """Behind the first step it is known better: PyTorch's kernels have taken what they keep for
        good, which no plan can move, and what came since then is of the training."""
        others = {c for c, reference in self._others.items() if not reference.expired()}
        self._others.clear()
        mine = {s._cdata: s.nbytes() for s in storages_in_python()
                if s._cdata not in others and not is_away(s)}
        base = counts.live() - sum(mine.values()) - self._more
        self.kept_by_kernels = max(0, base - self.base)
        self.base = base
