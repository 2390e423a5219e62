"""Where tensors are that a budget is for, and how their bytes are copied, kept and looked at there.

A storage knows its device, so the device of an op is that of what it works on. Nothing else follows
addresses, and nothing else asks what kind of device one is.
"""

import ctypes
import zlib

import torch


class HostDevice:
    """PyTorch on the CPU: a copy is done when the call that asks for it returns."""

    device = torch.device("cpu")

    def fresh(self, size):
        """A storage of so many bytes, whatever they are."""
        return torch.UntypedStorage(size)

    def out(self, storage, region, offset=0):
        """All bytes of a storage go to an offset of a region of the host tier."""
        region.write(storage.data_ptr(), storage.nbytes(), offset)

    def back(self, storage, region, offset=0):
        """All bytes of a storage come from there."""
        region.read(storage.data_ptr(), storage.nbytes(), offset)

    def content(self, storage):
        """The bytes of a storage, as bytes of Python's."""
        return ctypes.string_at(storage.data_ptr(), storage.nbytes())

    def with_content(self, content):
        """A storage with these bytes."""
        storage = self.fresh(len(content))
        ctypes.memmove(storage.data_ptr(), content, len(content))
        return storage

    def checksum(self, storage):
        """The same for the same bytes, and made without a copy of them."""
        return zlib.crc32((ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr()))

    def others_look_at(self, storage):
        """Whether another process may."""
        return storage.is_shared()

    def random_state(self):
        """What random ops on the device draw from next, on the host."""
        return torch.get_rng_state()

    def set_random_state(self, state):
        torch.set_rng_state(state)

    def without_autocast(self):
        """A block in which ops run in the precision of their arguments."""
        return torch.autocast(self.device.type, enabled=False)


HOST = HostDevice()
_BY_KIND = {HOST.device.type: HOST}


def serves(device):
    """Whether tensors on a device of PyTorch's may move."""
    return device.type in _BY_KIND


def others_look_at(storage):
    """Whether another process may. Nobody does at one that has no bytes (meta)."""
    if not serves(storage.device):
        return storage.device.type != "meta"
    return of(storage).others_look_at(storage)


def of(tensor_or_storage):
    """Of one on a device that is served."""
    return _BY_KIND[tensor_or_storage.device.type]
