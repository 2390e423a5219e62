"""Bytes by the allocator hook, with an allocator that refuses what is above the budget.

The models and the budgets of the specification (section 11), which has their peaks and floors.
"""

import pytest

import models
import tidepool_torch as tidepool
from tidepool_torch.planning.planning import machine_of
from tidepool_torch.base.memory import hook_is_loaded
from training import Style, differences, inside, plain

pytestmark = pytest.mark.skipif(not hook_is_loaded(), reason="the allocator hook is not preloaded")

CASES = [("resnet", b) for b in ("88.0MiB", "58.7MiB", "48.4MiB", "41.0MiB")] + [
    ("gpt", b) for b in ("153.4MiB", "102.3MiB", "84.4MiB", "64.0MiB", "52.0MiB")]

# A batch from before the step may not move, one that is made inside may.
STYLE = Style(batch_inside=True)

_plain = {}


def expected(name):
    if name not in _plain:
        _plain[name] = plain(models.LARGE[name], 5, STYLE)
    return _plain[name]


@pytest.mark.parametrize("allow", [("swap", "recompute"), ("swap",), ("recompute",)])
@pytest.mark.parametrize("name,budget", CASES)
def test_steps_stay_inside(name, budget, allow):
    more = {}
    if allow != ("swap",):
        # 0.1 GB/s for a step of about a second: so slow that computing again pays.
        more["machine"] = machine_of(1e8, 1e8)
    try:
        ran = inside(models.LARGE[name], 5, budget, STYLE, hard=True, time_limit=4, 
                     allow=allow, **more)
    except tidepool.BudgetInfeasible:
        # Weights and optimizer state cannot be computed again.
        assert allow == ("recompute",)
        pytest.skip("nothing may leave the device, and what has to stay is more than the budget")
    print(f"{name} {budget} {'+'.join(allow)}: measured {ran.peak / 2**20:.1f} MiB, "
          f"{ran.moved_out >> 20} MiB out, {ran.moved_in >> 20} in, {ran.reruns} reruns")
    assert differences(expected(name), ran) == []
    assert ran.planned_steps == 3
    assert ran.refused == 0
    assert ran.peak <= ran.budget
    assert ran.moved_in + ran.reruns > 0
