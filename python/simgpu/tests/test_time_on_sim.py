"""Virtual time: planned steps take what their plan predicts, beside plain ones, over links of several
speeds."""

import contextlib

import pytest

import simgpu
import tidepool_torch as tidepool
from sim_training import PLANNING, Case, machine, plain

# A step of 300 ms whose tensors are as large, beside the link, as 40 GB of a GPU's are.
SECONDS = 0.3
BYTES = 40e9
LAUNCH = 100  # nanoseconds


def _seconds_of(step):
    """Virtual, of one of several steps: copies of one go on into the next."""
    def of(steps):
        start = simgpu.now()
        for _ in range(steps):
            step()
        return (simgpu.now() - start) / 1e9

    return (of(9) - of(3)) / 6


def _train(case, link, bandwidth, share, seed):
    """(plain seconds, planned seconds, the Prediction, bytes moved in a step)"""
    simgpu.rates(bandwidth, link, LAUNCH)
    model, optimizer = case.make()
    batches = case.batches(1)
    case.step(model, optimizer, batches)
    plainly = _seconds_of(lambda: case.step(model, optimizer, batches))
    budget = tidepool.fit(model, optimizer, peak=int(plain(case).peak * share), report=False,
                          machine=machine(link), **{**PLANNING, "evaluations": 3000, "seed": seed})

    def step():
        with budget.step():
            case.step(model, optimizer, batches)

    with contextlib.closing(budget):
        for _ in range(3):
            step()
        taken = _seconds_of(step)
        return plainly, taken, budget._plans[0].prediction, budget.report().moved_out


@pytest.mark.parametrize("gigabytes", [25, 55, 400])
@pytest.mark.parametrize("share", [0.75, 0.6, 0.45])
def test_overhead_is_what_was_predicted(share, gigabytes):
    case = Case("gpt", "adamw", rows=16)
    simgpu.policy("lazy")
    simgpu.rates(1e9, 1e12, LAUNCH)
    model, optimizer = case.make()
    batches = case.batches(1)
    case.step(model, optimizer, batches)
    bandwidth = 1e9 * _seconds_of(lambda: case.step(model, optimizer, batches)) / SECONDS
    link = gigabytes * 1e9 * plain(case).peak / BYTES
    for seed in range(1, 5):
        plainly, taken, prediction, moved = _train(case, link, bandwidth, share, seed)
        # A search for addresses that time ends may leave the plan that moves all: then another.
        if prediction.seconds < 2 * prediction.unlimited:
            break
    assert plainly == pytest.approx(SECONDS, rel=0.05)
    measured = taken / plainly - 1
    predicted = prediction.seconds / prediction.unlimited - 1
    print(f"{share:.0%} over {gigabytes} GB/s: measured {measured:+.2%}, predicted {predicted:+.2%}, "
          f"{moved} bytes out")
    assert moved > 0
    assert abs(measured - predicted) <= 0.02
