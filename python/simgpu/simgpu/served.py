"""Makes "sim" one of the devices that the package tidepool_torch serves."""

from tidepool_torch.base import device
from tidepool_torch.base.stream_device import StreamDevice

from . import host_register, host_unregister

BLOCK = 512  # what blocks of "sim" are multiples of


def _make(where):
    return StreamDevice(where, BLOCK, host_register, host_unregister)


device.add_kind("sim", _make)
