"""CUDA's devices: what of them PyTorch does not have for every accelerator."""

import torch

from .stream_device import StreamDevice

_ROUNDING = 512


def make(device):
    return StreamDevice(device, _ROUNDING, _pin, _unpin)


def _pin(address, size):
    torch.cuda.check_error(torch.cuda.cudart().cudaHostRegister(address, size, 0))


def _unpin(address):
    torch.cuda.check_error(torch.cuda.cudart().cudaHostUnregister(address))
