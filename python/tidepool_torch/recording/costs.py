"""What an op takes that is not run: time by bytes and flops, workspace by kind."""

import math

import torch
from torch.utils.flop_counter import flop_registry

from ..base import calls
from ..base.device import HOST

_PROBE = 1 << 20  # bytes
_CALL = 5_000  # ns, of any op
_SCRATCH = 64 << 10  # of a kernel, beside copies


def _convolution(tensors, out):
    """oneDNN works on layouts of its own: the larger of argument and result and the weights are
    copied to one or from it."""
    image, weight = tensors[:2]
    return max(image.nbytes, out.nbytes) + weight.nbytes + _SCRATCH


def _convolution_backward(tensors, out):
    """Where the gradient of the image is asked for, both it and the result's are copied."""
    result, image, weight = tensors[:3]
    images = 1 if out[0] is None else 2
    return images * max(result.nbytes, image.nbytes) + weight.nbytes + _SCRATCH


def _copy_of_largest(tensors, out):
    return max((t.nbytes for t in tensors), default=0)


def _mask_of_largest(tensors, out):
    return max((t.numel() for t in tensors), default=0)


# Losses whose result, one number, lies in a storage as large as what was summed up.
_UNREDUCED = {"aten::mse_loss", "aten::smooth_l1_loss", "aten::soft_margin_loss",
              "aten::binary_cross_entropy"}


def unreduced_bytes(func, tensors):
    """Bytes that the storage of the result has at least, which a fake one does not show."""
    if func._schema.name not in _UNREDUCED:
        return 0
    shape = torch.broadcast_shapes(*(t.shape for t in tensors))
    return math.prod(shape) * tensors[0].element_size()


_WORKSPACE = {**dict.fromkeys(_UNREDUCED, _copy_of_largest),
              "aten::convolution": _convolution,
              "aten::convolution_backward": _convolution_backward,
              "aten::native_batch_norm_backward": _copy_of_largest,
              "aten::_safe_softmax": _mask_of_largest}


class Costs:
    """`flops` a second of matrix products, `bandwidth` in bytes a second of what reads and writes
    memory, `of_convolutions` flops a second of these, None: as of products."""

    def __init__(self, flops, bandwidth, of_convolutions=None):
        self.flops = flops
        self._of_convolutions = of_convolutions or flops
        self.bandwidth = bandwidth

    def time(self, func, args, kwargs, tensors, out):
        """Nanoseconds."""
        if calls.is_view(func):
            return _CALL
        moved = sum(t.nbytes for t in tensors + calls.tensors_out(out))
        speed = self._of_convolutions if "convolution" in func._schema.name else self.flops
        return _CALL + int(1e9 * max(moved / self.bandwidth,
                                     _flops(func, args, kwargs, out) / speed))

    @staticmethod
    def workspace(func, tensors, out):
        """Bytes beside the result: what was measured of PyTorch 2.15 on an x86-64, rounded up."""
        kind = _WORKSPACE.get(func._schema.name)
        return kind(tensors, out) if kind else 0


def _flops(func, args, kwargs, out):
    count = flop_registry.get(func._overloadpacket)
    try:
        return count(*args, **kwargs, out_val=out) if count else 0
    except Exception:  # pylint: disable=broad-except
        return 0  # a form that the registry does not know


def measured_costs(where=HOST):
    """Those of a device, by three ops on a MiB at most."""
    side = int((_PROBE / 4) ** 0.5)
    a = torch.ones(side, side, device=where.device)
    flops = 2.0 * side**3 / _best(where, lambda: torch.mm(a, a))
    image = torch.ones(4, 32, 32, 32, device=where.device)
    weight = torch.ones(32, 32, 3, 3, device=where.device)
    convolved = 2.0 * image.numel() * weight[0].numel()
    of_convolutions = convolved / _best(
        where, lambda: torch.nn.functional.conv2d(image, weight, padding=1))
    return Costs(flops, 2.0 * _PROBE / _best(where, lambda: a + 1.0), of_convolutions)


def _best(where, call, times=5):
    best = float("inf")
    for _ in range(times):
        timer = where.time_of_step()
        call()
        best = min(best, float(timer.stop()))
    return best
