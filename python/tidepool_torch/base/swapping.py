"""Storages that give their bytes away while every tensor over them stays alive.

Form A of the specification: torch 2.12 and newer. The functions behind it are private to torch, so
each is looked for and tried at import, and nothing is assumed of a version's number.
"""

import torch

from . import device
from .compat import storage_of


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
    torch._C._set_storage_data_ptr_access_error_msg(empty._cdata, message)
    storage._swap_data_ptr_(empty)
    torch._C._set_storage_data_ptr_access_error_msg(storage._cdata, message)


def set_bytes(storage, source, was_away):
    """Gives the storage what `source` has: its bytes, or a look at somebody else's."""
    storage._swap_data_ptr_(source)
    if was_away:
        # Behind the swap: another thread finds the message or the bytes.
        torch._C._clear_storage_data_ptr_access_error_msg(storage._cdata)


def take_bytes(storage):
    """Takes the bytes out of a storage, which goes on to look at them: the storage that owns them
    now is returned."""
    taken = alias(storage)
    storage._swap_data_ptr_(taken)
    return taken


def bring_back(storage, size, fill):
    """Gives a storage that is away bytes of its own again, which fill(storage) writes."""
    fresh = device.of(storage).fresh(size)
    fill(fresh)
    set_bytes(storage, fresh, True)


def why_not():
    """None where this torch has what is needed, else the reason in words."""
    for owner, name in (
        (torch.UntypedStorage, "_swap_data_ptr_"),
        (torch._C, "_construct_storage_from_data_pointer"),
        (torch._C, "_set_storage_data_ptr_access_error_msg"),
        (torch._C, "_clear_storage_data_ptr_access_error_msg"),
    ):
        if not hasattr(owner, name):
            return f"torch {torch.__version__} has no {name}: torch 2.12 or newer is needed"
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

