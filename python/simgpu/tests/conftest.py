"""Tests of the package on the device "sim"; its models are those of the package's own tests."""

import os
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import pytest  # noqa: E402

import sim_setup  # noqa: E402,F401  pylint: disable=unused-import
import simgpu  # noqa: E402


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
