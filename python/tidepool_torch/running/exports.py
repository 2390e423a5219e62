"""Sees numpy and dlpack look at the memory of tensors, before they do.

What they write goes by unseen from then on. numpy leaves a mark on a storage (may_move) that dlpack
does not: here it gets the same one. Code in C++ that exports by itself is not seen.
"""

import functools

import torch
import torch.utils.dlpack

from ..base import calls, device
from ..base.compat import storage_of

_MARK = "_tidepool_sees"
_listener = [None]


def tell(listener):
    """listener(storage) is called from now on, on any thread; None: nobody is told."""
    _listener[0] = listener


def watch():
    """From now on, for the whole process."""
    _see(torch.Tensor, "numpy", lambda storage: None)
    for owner, name in ((torch.Tensor, "__dlpack__"), (torch, "to_dlpack"),
                        (torch.utils.dlpack, "to_dlpack")):
        _see(owner, name, lambda storage: device.of(storage).note_export(storage))


def _see(owner, name, mark):
    export = getattr(owner, name, None)
    if export is None or hasattr(export, _MARK):
        return

    @functools.wraps(export)
    def seen(tensor, *args, **kwargs):
        if calls.is_plain(tensor) and device.serves(tensor.device):
            storage = storage_of(tensor)
            if _listener[0] is not None:
                _listener[0](storage)
            mark(storage)
        return export(tensor, *args, **kwargs)

    setattr(seen, _MARK, True)
    setattr(owner, name, seen)
