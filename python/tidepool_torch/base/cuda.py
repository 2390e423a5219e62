"""CUDA's devices: what of them PyTorch does not have for every accelerator."""

import sys

import torch

from .errors import TidepoolError
from .stream_device import StreamDevice

_ROUNDING = 512

# The allocator maps and lets go of pieces of 20 MiB, and of 2 MiB for small blocks.
_LEAST_IN_HOLES = 40 << 20
_SHARE_IN_HOLES = 1 / 50


def make(device):
    return CudaDevice(device, _ROUNDING, _pin, _unpin, _in_holes)


class CudaDevice(StreamDevice):
    """A GPU. Not thread-safe; the budget of a device is one process's."""

    def prepare(self):
        """Has the allocator join its segments: else it keeps up to 1 MiB of each large block."""
        backend = torch.cuda.get_allocator_backend()
        if backend != "native":
            raise TidepoolError(
                f"PyTorch's memory allocator for GPUs is {backend!r}, in which a budget cannot be held. "
                "Next: no backend: in PYTORCH_ALLOC_CONF, and no CUDAPluggableAllocator")
        settings = torch.cuda.memory._snapshot().get("allocator_settings", {})
        if settings.get("expandable_segments") is not True:
            _set_expandable_segments()
            torch.cuda.empty_cache()


def _set_expandable_segments():
    try:
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    except (AttributeError, RuntimeError) as error:
        print(f"tidepool: the allocator's segments could not be made expandable ({error}); it keeps more "
              "between blocks. Next: PYTORCH_ALLOC_CONF=expandable_segments:True", file=sys.stderr)


def _in_holes(budget):
    return max(_LEAST_IN_HOLES, int(budget * _SHARE_IN_HOLES))


def _pin(address, size):
    torch.cuda.check_error(torch.cuda.cudart().cudaHostRegister(address, size, 0))


def _unpin(address):
    torch.cuda.check_error(torch.cuda.cudart().cudaHostUnregister(address))
