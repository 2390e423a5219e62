"""Storages that give their bytes away by being resized to none, and get them by being resized back.

Form B of the specification: torch 1.13 to 2.11. Tensors over such a storage stay alive, but an op
that makes a view of one fails, so views count as uses; and whoever reads one outside of PyTorch's
dispatcher reads address 0, which ends the process.
"""

import torch

from .compat import StorageWeakRef, may_move

# Storages that are away and how many bytes they had: without bytes they do not say it themselves.
# The weak reference keeps the identity from being given to another storage.
_sizes = {}
_most_before_burial = [64]


class NotMovable(RuntimeError):
    """Somebody else looks at the storage's memory: nothing was changed."""


def nbytes(storage):
    """Bytes of a storage, also of one that is away."""
    size = storage.nbytes()
    if size == 0 and storage._cdata in _sizes:
        return _sizes[storage._cdata][1]
    return size


def has_bytes(storage):
    return storage.nbytes() > 0 or storage._cdata not in _sizes


def set_away(storage, message):
    """Leaves the storage without bytes. `message` is for forms that can show it: nobody reads it."""
    size = storage.nbytes()
    if size == 0:
        return
    if not may_move(storage):
        raise NotMovable("a tensor's memory is looked at from outside of PyTorch, as numpy() does")
    storage.resize_(0)
    _bury()
    _sizes[storage._cdata] = (StorageWeakRef(storage), size)


def say_of_away(storage, message):
    """Who touches it is told nothing here."""


def bring_back(storage, size, fill):
    """Gives the storage `size` bytes again, which fill(storage) writes. Where that fails it stays
    away."""
    storage.resize_(size)
    try:
        fill(storage)
    except BaseException:
        storage.resize_(0)
        raise
    _sizes.pop(storage._cdata, None)


def _bury():
    if len(_sizes) >= _most_before_burial[0]:
        for identity in [c for c, (reference, _) in _sizes.items() if reference.expired()]:
            del _sizes[identity]
        _most_before_burial[0] = max(64, 2 * len(_sizes))


def why_not():
    """None where this torch has what is needed, else the reason in words."""
    try:
        return _tried()
    except (AttributeError, RuntimeError, TypeError) as error:
        return (f"torch {torch.__version__} does not resize storages as it is needed ({error}): "
                "torch 1.13 or newer is needed")


def _tried():
    probe = torch.arange(4.0)
    storage = probe.untyped_storage() if hasattr(probe, "untyped_storage") else probe._storage()
    copy = storage.clone()
    if not may_move(storage):
        return f"torch {torch.__version__} does not resize storages"
    set_away(storage, "")
    if storage.nbytes() != 0 or nbytes(storage) != copy.nbytes() or probe.shape != (4,):
        return f"torch {torch.__version__} does not take a storage's bytes"
    bring_back(storage, copy.nbytes(), lambda fresh: fresh.copy_(copy))
    if probe.tolist() != [0.0, 1.0, 2.0, 3.0]:
        return f"torch {torch.__version__} does not give a storage its bytes back"
    return None
