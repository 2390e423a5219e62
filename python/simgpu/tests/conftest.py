"""Tests of the package on the device "sim"; its models are those of the package's own tests."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.dirname(HERE), os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests")]

import pytest  # noqa: E402
import torch  # noqa: E402

import simgpu  # noqa: E402
from tidepool_torch.base import device  # noqa: E402
from tidepool_torch.base.stream_device import StreamDevice  # noqa: E402

BLOCK = 4096  # what blocks of "sim" are multiples of


def _make(where):
    return StreamDevice(where, BLOCK, simgpu.host_register, simgpu.host_unregister)


device.add_kind("sim", _make)
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _whole():
    """Each test finds the device as it is at first, and leaves no race unsaid."""
    simgpu.policy("lazy")
    simgpu.raise_races(False)
    simgpu.races()
    yield
    simgpu.raise_races(False)
    simgpu.policy("eager")
    simgpu.cap(1 << 36)
    simgpu.rates(4e12, 5e10, 5000)
    simgpu.fail_allocation(-1)
    for name in ("copy to host", "copy to device"):
        simgpu.fail_task(name, -1)
    simgpu.synchronize()
    simgpu.empty_cache()
