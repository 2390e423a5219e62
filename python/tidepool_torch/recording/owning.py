"""Gives tensors bytes of their own whose memory came from elsewhere.

What `torch.load` and `from_pretrained` read is memory of a file's, which PyTorch calls not
resizable; so is memory that numpy shares. Such a storage must not move: others may look at the same
memory. So the tensors get another storage, where no other tensor looks at the old one: a view of a
parameter that somebody keeps, or an array that numpy exported, holds the storage and is found.
"""

import torch

from ..base import calls, device
from ..base.primitives import StorageWeakRef, living, may_move, storage_of


class Owning:
    def __init__(self):
        self.bytes = 0
        self.due = False  # something was loaded or looked at since

    def own(self, tensors, is_held=lambda storage: False):
        """`tensors` are all that the model and the optimizer have; is_held(storage) tells of one
        that is away or looks at a block of the runtime: nothing of those is asked."""
        self.due = False
        shared = {}
        for tensor in tensors:
            storage = storage_of(tensor)
            if (not is_held(storage) and not may_move(storage)
                    and _may_be_owned(tensor, storage)):
                shared.setdefault(storage._cdata, []).append(tensor)
            del storage
        for of_one_storage in shared.values():
            self._own(of_one_storage)

    def _own(self, tensors):
        before = StorageWeakRef(storage_of(tensors[0]))
        fresh = storage_of(tensors[0]).clone()
        size = fresh.nbytes()
        for tensor in tensors:
            _look_at(tensor, fresh)
        if before.expired():
            self.bytes += size
            return
        old = living(before)
        for tensor in tensors:
            _look_at(tensor, old)


def _may_be_owned(tensor, storage):
    return (calls.is_plain(tensor) and device.serves(storage.device)
            and not device.others_look_at(storage))


def _look_at(tensor, storage):
    """The same tensor, with its place in autograd, over another storage."""
    tensor.data = torch.empty(0, dtype=tensor.dtype, device=storage.device).set_(
        storage, tensor.storage_offset(), tensor.size(), tensor.stride())
