"""One rank of test_ddp.py: trains a tiny model with DDP, plain and inside a budget, compares bits.

    python ddp_worker.py '{"model": "resnet", ...}'     one line of JSON on stdout
"""

import gc
import hashlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import models
import tidepool_torch as tidepool
from tidepool_torch.planning import machine_of
from tidepool_torch.memory import counts

STEPS = 8


def build(case):
    torch.manual_seed(0)
    if case["model"] == "resnet":
        model = models.ResNet(width=16, blocks=(2, 1))
        return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model = models.GPT(vocabulary=512, width=128, layers=3, length=64)
    return model, torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)


def make(case):
    model, optimizer = build(case)
    ddp = DistributedDataParallel(model, **case.get("ddp", {}))
    torch.manual_seed(5 + dist.get_rank())
    return model, ddp, optimizer


def batch(case, number):
    g = torch.Generator().manual_seed(1000 + 2 * number + dist.get_rank())
    if case["model"] == "resnet":
        return torch.randn(32, 3, 16, 16, generator=g), torch.randint(0, 10, (32,), generator=g)
    ids = torch.randint(0, 512, (8, 65), generator=g)
    return ids[:, :-1], ids[:, 1:]


def loss_of(ddp, x, y):
    return F.cross_entropy(ddp(x).flatten(0, -2), y.flatten())


def one_step(case, ddp, optimizer, number):
    parts = case.get("parts", 1)
    losses = []
    for part in range(parts):
        x, y = batch(case, number * parts + part)
        if part < parts - 1:
            with ddp.no_sync():
                loss = loss_of(ddp, x, y)
                loss.backward()
        else:
            loss = loss_of(ddp, x, y)
            loss.backward()
        losses.append(loss.detach())
    optimizer.step()
    optimizer.zero_grad()
    return [float(loss) for loss in losses]


def bits(model, optimizer):
    digest = hashlib.sha256()
    tensors = [*model.parameters(), *model.buffers()]
    for state in optimizer.state.values():
        tensors += [v for v in state.values() if isinstance(v, torch.Tensor)]
    for tensor in [*tensors, torch.get_rng_state()]:
        digest.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
                      if tensor.dim() else repr(float(tensor)).encode())
    return digest.hexdigest()


def settle():
    gc.collect()
    dist.barrier()
    return counts.live()


def plain(case):
    model, ddp, optimizer = make(case)
    one_step(case, ddp, optimizer, 0)  # what kernels and gloo set up once is no training's
    del model, ddp, optimizer
    before = settle()
    model, ddp, optimizer = make(case)
    losses = []
    for number in range(STEPS):
        if number == STEPS - 1:
            counts.restart()
        losses.append(one_step(case, ddp, optimizer, number))
    return losses, bits(model, optimizer), counts.peak() - before


def inside(case, peak):
    """The same inside a budget, and what it showed."""
    before = settle()
    model, ddp, optimizer = make(case)
    budget = tidepool.fit(ddp, optimizer, peak=peak, home=False, min_bytes=16384, evaluations=200,
                          machine=machine_of(*[case.get("link", 2e9)] * 2), **case.get("fit", {}))
    losses, peaks, planned, moved, reruns = [], [], 0, 0, 0
    for number in range(STEPS):
        counts.restart()
        with budget.step():
            losses.append(one_step(case, ddp, optimizer, number))
        peaks.append(counts.peak() - before)
        if budget._running is not None:
            planned += 1
    for p in budget._plans:
        moved += p.executor.moved_out + p.executor.moved_in
        reruns += p.executor.reruns
    away = budget._away
    shown = {"peaks": peaks, "planned": planned, "moved": moved, "reruns": reruns,
             "reactive": away.moved_out + away.moved_in, "divergences": budget.divergences,
             "floor": None, "host": budget._tier.limit}
    budget.close()
    return losses, bits(model, optimizer), shown


def compare(case):
    losses, state, peak = plain(case)
    allowed = int(peak * case["share"])
    try:
        with_budget, state_with_budget, shown = inside(case, allowed)
    finally:
        counts.limit(0)
    return {"peak": peak, "budget": allowed, "losses": losses == with_budget,
            "state": state == state_with_budget, **shown}


def fail(case):
    """Rank `case["rank"]` has a budget that cannot be."""
    model, ddp, optimizer = make(case)
    peak = case["peak"] if dist.get_rank() in case["ranks"] else "1GiB"
    budget = tidepool.fit(ddp, optimizer, peak=peak, home=False, min_bytes=16384)
    start = time.monotonic()
    try:
        for number in range(STEPS):
            start = time.monotonic()
            with budget.step():
                one_step(case, ddp, optimizer, number)
    except MemoryError as error:
        return {"error": str(error), "type": type(error).__name__, "smallest": error.smallest,
                "step": budget.steps, "at": time.time(), "took": time.monotonic() - start}
    return {"error": None}


def main():
    torch.set_num_threads(1)
    case = json.loads(sys.argv[1])
    init = {"init_method": os.environ["TEST_INIT"], "rank": int(os.environ["RANK"]),
            "world_size": int(os.environ["WORLD_SIZE"])} if "TEST_INIT" in os.environ else {}
    dist.init_process_group("gloo", **init)
    result = {"compare": compare, "fail": fail}[case.get("what", "compare")](case)
    print(json.dumps({"rank": dist.get_rank(), **result}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
