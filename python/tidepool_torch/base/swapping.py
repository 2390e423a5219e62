"""Storages that give their bytes away while every tensor over them stays alive.

Forms A and C of the specification: by functions that torch 2.12 has, which are private to it, or by our
own for torch 2.7 to 2.11 (storage_swap.py). Each is looked for and tried at import, and nothing is
assumed of a version's number.
"""

import torch

from . import device, storage_swap
from .compat import storage_of


class _Torch:
    """What torch has."""

    @staticmethod
    def swap(storage, other):
        storage._swap_data_ptr_(other)

    @staticmethod
    def say_away(storage, text):
        torch._C._set_storage_data_ptr_access_error_msg(storage._cdata, text)

    @staticmethod
    def say_here(storage):
        torch._C._clear_storage_data_ptr_access_error_msg(storage._cdata)


_by = [_Torch]


def swap(storage, other):
    """Each has the other's bytes then."""
    _by[0].swap(storage, other)


def nbytes(storage):
    return storage.nbytes()


def has_bytes(storage):
    try:
        storage.data_ptr()
        return True
    except RuntimeError:
        return False


def _over(address, storage):
    return torch._C._construct_storage_from_data_pointer(address, storage.device, storage.nbytes())


def alias(storage):
    """Another storage over the same bytes, which does not own them."""
    return _over(storage.data_ptr(), storage)


def set_away(storage, message):
    """Leaves the storage without bytes. Its size, its tensors and their views stay; whoever touches
    the data gets `message` as a RuntimeError. What the storage owned goes, unless it was taken."""
    empty = _over(0, storage)
    # Marked before the swap, which takes the mark along: no other thread finds address 0 without it.
    _by[0].say_away(empty, message)
    _by[0].swap(storage, empty)
    _by[0].say_away(storage, message)


def say_of_away(storage, message):
    """Another message for one that is away."""
    _by[0].say_away(storage, message)


def set_bytes(storage, source, was_away):
    """Gives the storage what `source` has: its bytes, or a look at somebody else's."""
    _by[0].swap(storage, source)
    if was_away:
        # Behind the swap: another thread finds the message or the bytes.
        _by[0].say_here(storage)


def take_bytes(storage):
    """Takes the bytes out of a storage, which goes on to look at them: the storage that owns them
    now is returned."""
    taken = alias(storage)
    _by[0].swap(storage, taken)
    return taken


def bring_back(storage, size, fill):
    """Gives a storage that is away bytes of its own again, which fill(storage) writes."""
    fresh = device.of(storage).fresh(size)
    fill(fresh)
    set_bytes(storage, fresh, True)


def why_not():
    """None where this torch has what form A needs, else the reason in words."""
    for owner, name in (
        (torch.UntypedStorage, "_swap_data_ptr_"),
        (torch._C, "_construct_storage_from_data_pointer"),
        (torch._C, "_set_storage_data_ptr_access_error_msg"),
        (torch._C, "_clear_storage_data_ptr_access_error_msg"),
    ):
        if not hasattr(owner, name):
            return f"torch {torch.__version__} has no {name}: torch 2.12 or newer is needed"
    _by[0] = _Torch
    return _tried()


def why_not_by_ours():
    """The same of form C."""
    if not hasattr(torch._C, "_construct_storage_from_data_pointer"):
        return f"torch {torch.__version__} is too old for storages that swap: 2.7 or newer is needed"
    reason = storage_swap.find()
    if reason is not None:
        return reason
    _by[0] = storage_swap
    return _tried()


def _tried():
    probe = torch.arange(4.0)
    storage = storage_of(probe)
    taken = take_bytes(storage)
    set_away(storage, "tidepool: a trial")
    try:
        probe.sum()
        return f"torch {torch.__version__} reads a storage that has no bytes"
    except RuntimeError:
        pass
    set_bytes(storage, taken, True)
    if probe.tolist() != [0.0, 1.0, 2.0, 3.0]:
        return f"torch {torch.__version__} does not give a storage its bytes back"
    return None
