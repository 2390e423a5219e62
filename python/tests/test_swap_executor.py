"""A plan of copies, walked by hand: what form B's executor does with each instruction."""

import types

import pytest
import torch

from tidepool_torch.running.away import Away
from tidepool_torch.running.host import HostTier
from tidepool_torch.base.primitives import FORM, storage_of
from tidepool_torch.form_b.swap_executor import SwapExecutor

pytestmark = pytest.mark.skipif(FORM != "B", reason="form B serves other torches")
ADD = torch.ops.aten.add_.Tensor
SIZE = 4096


def copy(source, target):
    return types.SimpleNamespace(is_copy=True, source=source, target=target)


class Schedule:
    """One weight: from host place 0 to the device (1), `add_`, out to host place 2."""

    def __init__(self):
        action = types.SimpleNamespace(
            instruction=1, births=[], updates=[(0, 1)], touched=(0,),
            op=types.SimpleNamespace(name="add_", shapes=()))
        self.calls = [(ADD, action)]
        self.inputs = [[0]]
        self.made = [None]
        self.highest = -1
        self.instructions = [copy(0, 1), types.SimpleNamespace(is_copy=False), copy(1, 2)]
        self.ending_at = [[], [], [1]]
        self.accesses_left = {0: 1}
        self.managed = {0}
        places = [(False, 0), (True, 0), (False, SIZE)]
        self.plan = types.SimpleNamespace(boundary={0: 0}, placements=[
            types.SimpleNamespace(tensor=0, on_device=d, offset=o) for d, o in places])
        self.program = types.SimpleNamespace(
            tensors=[types.SimpleNamespace(name="weight", bytes=SIZE)], min_bytes=0)

    def tensor_at(self, placement):
        return 0


def test_what_lands_is_the_newest_of_several_host_places():
    weight = torch.zeros(SIZE // 4)
    storage = storage_of(weight)
    away = Away(HostTier())
    executor = SwapExecutor(Schedule(), HostTier().region(2 * SIZE))
    executor.enter({"weight": storage}, away)
    executor.begin({})
    assert storage.nbytes() == 0 and executor.has(storage)
    executor.run(ADD, (weight, 1), {})
    assert weight.tolist() == [1] * (SIZE // 4)
    executor._walk(3)
    assert storage.nbytes() == 0 and executor.moved_in == SIZE and executor.moved_out == 2 * SIZE
    assert [name for name, _ in executor.land(away)] == ["weight"]
    away.back(storage)
    assert weight.tolist() == [1] * (SIZE // 4) and not executor.has(storage)
