"""Times of ops that nobody measured: the compute model of Tidepool's machine preset gtx1080ti."""

import math
import re

from .writer import UPDATE

MACHINE = "gtx1080ti"
SOURCE = f"model of {MACHINE}"

_PEAK_FLOPS = 11.34e12
_BANDWIDTH = 360e9
_LAUNCH_NS = 10_000
_MAX_EFFICIENCY = 0.84
_HALF_FLOPS = 2.43e9

_DRAWS = re.compile(r"dropout|rand|bernoulli|normal_|multinomial|uniform|exponential_|poisson")


def time_ns(flops, traffic):
    seconds = traffic / _BANDWIDTH
    if flops > 0:
        efficiency = _MAX_EFFICIENCY * flops / (flops + _HALF_FLOPS)
        seconds = max(seconds, flops / (efficiency * _PEAK_FLOPS))
    return round(seconds * 1e9) + _LAUNCH_NS


def traffic_of(writer, modes):
    """Bytes that an op reads and writes."""
    return sum(writer.tensors[t]["bytes"] * (2 if mode == UPDATE else 1)
               for t, mode in modes.items())


def draws(name):
    """Whether an op of this name draws random numbers."""
    return _DRAWS.search(name) is not None


def add_update(writer, tensor):
    """An optimizer's op on one tensor of the model; it reads a gradient and some state of its size."""
    name = writer.tensors[tensor]["name"]
    traffic = 3 * writer.tensors[tensor]["bytes"]
    writer.op(f"update.{name}", "update", {tensor: UPDATE}, time_ns(0, traffic), phase="update",
              traffic=traffic, source=SOURCE)


def flops_of(name, inputs, output):
    """Of products and convolutions alone; `inputs` and `output` are shapes."""
    name = name.rsplit("::", 1)[-1]
    if name == "convolution_backward" and len(inputs) > 2:
        return 4.0 * math.prod(inputs[0]) * math.prod(inputs[2][1:])
    if name.startswith(("conv", "_conv", "cudnn_conv")) and len(inputs) > 1:
        return 2.0 * math.prod(output) * math.prod(inputs[1][1:])
    if name in ("mm", "bmm", "matmul", "linear") and inputs and inputs[0]:
        return 2.0 * math.prod(output) * inputs[0][-1]
    if name in ("addmm", "baddbmm") and len(inputs) > 1 and inputs[1]:
        return 2.0 * math.prod(output) * inputs[1][-1]
    return 0.0
