"""What a process holds that is not of the training."""

import torch

from ..base import instances, primitives
from ..base.errors import in_words
from ..base.primitives import StorageWeakRef, storage_of


_MOST_NAMED = 3


def _holds(tensor):
    """Says whether a tensor is whole, which one is not that another thread lets go of. Asking makes its
    object in Python keep it alive (torch before 2.10)."""
    if hasattr(torch.Tensor, "_fix_weakref"):
        tensor._fix_weakref()
    try:
        return tensor.device is not None
    except RuntimeError:  # it "does not have a device"
        return False


def _tensors_in_python(where):
    """One of each storage in memory of that device."""
    found = {}
    for tensor in filter(_holds, instances.of_exactly(torch.Tensor, torch.nn.Parameter)):
        if where.has(tensor) and tensor.layout == torch.strided:
            found[storage_of(tensor)._cdata] = tensor
    return found.values()


def storages_in_python(where):
    """Storages of every tensor of a device that Python knows, each once."""
    return [storage_of(tensor) for tensor in _tensors_in_python(where)]


class Beside:
    """`base` are live bytes of the device `where` that are of other things than the training: `held`,
    storages, and `more` bytes are of the training."""

    def __init__(self, where, held, more):
        self._where = where
        mine = {s._cdata: where.counted(s.nbytes()) for s in held}
        self._more = more
        self._others = {s._cdata: StorageWeakRef(s) for s in storages_in_python(where)
                        if s._cdata not in mine}
        self.base = self._first_base = where.counts.live() - sum(mine.values()) - more
        self.kept_by_kernels = 0

    def largest(self, known):
        """The largest tensors of a script's that are of the training, but for storages `known`, in
        words."""
        known = {s._cdata for s in known}
        found = [t for t in _tensors_in_python(self._where) if storage_of(t)._cdata not in known
                 and storage_of(t)._cdata not in self._others]
        found.sort(key=lambda t: -primitives.nbytes(storage_of(t)))
        return ", ".join(f"{in_words(primitives.nbytes(storage_of(t)))} {list(t.shape)}"
                         for t in found[:_MOST_NAMED])

    def look_again(self, is_away, of_step=()):
        """In and behind the first step it is known better: PyTorch's kernels have taken what they
        keep for good, which no plan can move, and what came since then is of the training. `of_step`
        are storages that Python may not know of: autograd's."""
        self._others = {c: r for c, r in self._others.items() if not r.expired()}
        mine = {s._cdata: self._where.counted(s.nbytes()) for s in [*storages_in_python(self._where), *of_step]
                if s._cdata not in self._others and not is_away(s)}
        self.base = self._where.counts.live() - sum(mine.values()) - self._more
        self.kept_by_kernels = max(0, self.base - self._first_base)
