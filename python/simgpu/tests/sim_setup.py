"""Makes "sim" a device of the package's, with the host's own accesses seen. Imported before all else."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.dirname(HERE), os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests")]

import torch  # noqa: E402

import simgpu.served  # noqa: E402
from tidepool_torch.base import nameless  # noqa: E402
from tidepool_torch.running import pinned  # noqa: E402


def _host_looks(owner, name, write, address):
    """The host's own use of pinned memory is an access too."""
    used = getattr(owner, name)

    def noted(self, pointer, size, offset=0):
        simgpu.host_access(address(self, pointer, offset), size, write, f"the host's {name}")
        used(self, pointer, size, offset)

    setattr(owner, name, noted)


for name, write in (("write", True), ("read", False)):
    _host_looks(pinned.Region, name, write, lambda region, _, offset: region.address + offset)
    # What a file is given is read, and what it gives is written.
    _host_looks(nameless.NamelessFile, name, not write, lambda _, pointer, __: pointer)


def _other_orders(by):
    """Orders by chance are others than those that a test names: with TIDEPOOL_ORDER_SEED."""
    policy = simgpu.policy
    simgpu.policy = lambda name, seed=0: policy(name, seed + 1000 * by)


_other_orders(int(os.environ.get("TIDEPOOL_ORDER_SEED", "0")))
torch.set_num_threads(1)
