"""Makes "sim" a device of the package's, with the host's own accesses seen. Imported before all else."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.dirname(HERE), os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests")]

import torch  # noqa: E402

import simgpu.served  # noqa: E402
from tidepool_torch.running import pinned  # noqa: E402


def _host_looks(name, write):
    """The host's own use of pinned memory is an access too."""
    used = getattr(pinned.Region, name)

    def noted(region, pointer, size, offset=0):
        simgpu.host_access(region.address + offset, size, write, f"the host's {name}")
        used(region, pointer, size, offset)

    setattr(pinned.Region, name, noted)


_host_looks("write", True)
_host_looks("read", False)
torch.set_num_threads(1)
