"""Copies, keeps and looks at bytes of tensors, where they are.

A storage knows its device, so no device is the current one. Nothing else asks of which kind one is, and
only what takes bytes out of storages (swapping, resizing) follows addresses too.
"""

import ctypes
import zlib

import torch


class HostDevice:
    """PyTorch on the CPU: a copy is done when the call that asks for it returns."""

    device = torch.device("cpu")

    def fresh(self, size):
        """Makes a storage of so many bytes, which are not set."""
        return torch.UntypedStorage(size)

    def out(self, storage, region, offset=0):
        """Copies all bytes of a storage to an offset of a region of the host tier."""
        region.write(storage.data_ptr(), storage.nbytes(), offset)

    def back(self, storage, region, offset=0):
        """Copies all bytes of a storage from there."""
        region.read(storage.data_ptr(), storage.nbytes(), offset)

    def content(self, storage):
        """Returns the bytes of a storage, as Python has bytes."""
        return ctypes.string_at(storage.data_ptr(), storage.nbytes())

    def with_content(self, content):
        """Makes a storage with these bytes."""
        storage = self.fresh(len(content))
        ctypes.memmove(storage.data_ptr(), content, len(content))
        return storage

    def checksum(self, storage):
        """Sums the bytes up without a copy of them: the same bytes have the same sum."""
        return zlib.crc32((ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr()))

    def others_look_at(self, storage):
        """Says whether another process may look at the bytes."""
        return storage.is_shared()

    def random_state(self):
        """Returns the state that random ops of this device draw from, on the host."""
        return torch.get_rng_state()

    def set_random_state(self, state):
        torch.set_rng_state(state)

    def without_autocast(self):
        """Enters a block in which ops keep the precision of their arguments."""
        return torch.autocast(self.device.type, enabled=False)


HOST = HostDevice()
_BY_KIND = {HOST.device.type: HOST}


def serves(device):
    """Says whether tensors on a device of PyTorch's may move."""
    return device.type in _BY_KIND


def others_look_at(storage):
    """Says whether another process may look at the bytes: not where there are none (meta)."""
    if not serves(storage.device):
        return storage.device.type != "meta"
    return of(storage).others_look_at(storage)


def of(tensor_or_storage):
    """Returns the device of a tensor or storage. KeyError where none serves it."""
    return _BY_KIND[tensor_or_storage.device.type]
