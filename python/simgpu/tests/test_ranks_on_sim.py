"""Two ranks with a "sim" each, under DistributedDataParallel: the bits of the same without a budget."""

import concurrent.futures
import contextlib
import gc
import os

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import sim_group  # noqa: F401  pylint: disable=unused-import
import simgpu
import tidepool_torch as tidepool
from processes import processes
from sim_training import PLANNING, Case, Ran, differences, machine, state_of, values

STEPS = 8  # three warm up, the fourth is recorded
VIEW = {"gradient_as_bucket_view": True}


def _train(case, options, begin):
    """begin(ddp, optimizer) returns a Budget, or None."""
    gc.collect()
    simgpu.synchronize()
    base = simgpu.stats()["allocated"]
    model, optimizer = case.make()
    ddp = DistributedDataParallel(model, **options)
    torch.manual_seed(5 + dist.get_rank())
    budget = begin(ddp, optimizer)
    losses, peaks = [], []
    for number in range(STEPS):
        batches = case.batches(100 * number + 10 * dist.get_rank())
        gc.collect()
        simgpu.reset_peak()
        with budget.step() if budget else contextlib.nullcontext():
            losses += case.step(ddp, optimizer, batches, number)
        peaks.append(simgpu.stats()["peak"] - base)
    ran = Ran(values(losses), {}, max(peaks[4:]))
    if budget:
        ran.report = budget.report()
        ran.divergences = budget.divergences
        budget.close()
    ran.state = state_of(model, optimizer)
    return ran


def _rank(rank, store, case, options, share, policy):
    dist.init_process_group("cpu:gloo,sim:simccl", init_method=f"file://{store}", rank=rank, world_size=2)
    try:
        simgpu.policy("eager")
        expected = _train(case, options, lambda *_: None)
        simgpu.policy(policy, 3)
        simgpu.raise_races(True)
        ran = _train(case, options, lambda ddp, optimizer: tidepool.fit(
            ddp, optimizer, peak=int(expected.peak * share), report=False, machine=machine(), **PLANNING))
        simgpu.raise_races(False)
        report = ran.report
        return {"differ": differences(expected, ran), "races": simgpu.races(),
                "over": ran.peak - int(expected.peak * share), "planned": report.planned_steps,
                "moved": report.moved_out, "divergences": ran.divergences}
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("policy", ["lazy", "random"] if "TIDEPOOL_ATTACKS" in os.environ else ["random"])
@pytest.mark.parametrize("case, options", [
    (Case(), {}), (Case("resnet", "sgd"), VIEW), (Case("llama", "foreach", micro_batches=2), VIEW),
    (Case("unet", "fused"), {"broadcast_buffers": False})],
    ids=["gpt", "resnet view", "llama view in parts", "unet"])
def test_ranks_train_inside_their_budgets_to_the_same_bits(case, options, policy, tmp_path):
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=processes) as both:
        told = [both.submit(_rank, rank, tmp_path / "store", case, options, 0.7, policy)
                for rank in range(2)]
        for rank in [one.result() for one in told]:
            assert rank["differ"] == rank["races"] == []
            assert rank["planned"] == 4, rank
            assert rank["divergences"] == 0, rank
            assert rank["moved"] > 0, rank
            assert rank["over"] <= 16 * 512, rank
