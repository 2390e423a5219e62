"""One rank of test_ddp.py: trains tiny models with DDP, plain and inside a budget.

    python ddp_worker.py '[{"what": "compare", "model": "gpt", ...}, ...]'

prints a line of JSON for each case. Keys of a case: `model`; `fsdp` instead of DDP; `share` of the
plain peak, or `budget`; `ddp` and `fit`, more arguments of each; `parts` micro-batches; `link`
bytes/s that are planned for; `to_none` of zero_grad; `grow` (rank, step): batches four times as
large from then on.
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
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import models
import tidepool_torch as tidepool
from tidepool_torch.base.memory import counts, hook_is_loaded
from tidepool_torch.planning.planning import machine_of
from tidepool_torch.running.ranks import Ranks
from tidepool_torch.base.wrappers import local

RECORDED = 4  # the step that ranks record
SAVED = 6  # behind this step a checkpoint is made


def make(case):
    torch.manual_seed(0)
    if case["model"] == "resnet":
        model = models.ResNet(width=16, blocks=(2, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    else:
        model = models.GPT(vocabulary=512, width=128, layers=3, length=64)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)
    if case.get("fsdp"):
        return make_sharded(model, case)
    ddp = DistributedDataParallel(model, **case.get("ddp", {}))
    torch.manual_seed(5 + dist.get_rank())
    return model, ddp, optimizer


def make_sharded(model, case):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model.body if case["model"] == "resnet" else model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    # Made behind it: the optimizer has the shards.
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    torch.manual_seed(5 + dist.get_rank())
    return model, model, optimizer


def batch(case, number, step):
    g = torch.Generator().manual_seed(1000 + 2 * number + dist.get_rank())
    rank, since = case.get("grow", (-1, 0))
    times = 4 if dist.get_rank() == rank and step >= since else 1
    if case["model"] == "resnet":
        size = 32 * times
        return torch.randn(size, 3, 16, 16, generator=g), torch.randint(0, 10, (size,), generator=g)
    ids = torch.randint(0, 512, (8 * times, 65), generator=g)
    return ids[:, :-1], ids[:, 1:]


def one_step(case, ddp, optimizer, step):
    parts = case.get("parts", 1)
    losses = []
    for part in range(parts):
        x, y = batch(case, step * parts + part, step)
        if case.get("fsdp"):
            ddp.set_requires_gradient_sync(part == parts - 1)
        else:
            ddp.require_backward_grad_sync = part == parts - 1  # as no_sync() does
        loss = F.cross_entropy(ddp(x).flatten(0, -2), y.flatten())
        loss.backward()
        losses.append(float(loss.detach()))
    optimizer.step()
    optimizer.zero_grad(set_to_none=case.get("to_none", True))
    return losses


def digest(tensors):
    total = hashlib.sha256()
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and local(tensor).numel():
            copy = local(tensor.detach()).clone()  # numpy would pin the tensor itself
            flat = copy.reshape(-1).view(torch.uint8)
            total.update(flat.numpy().tobytes())
    return total.hexdigest()


def bits(model, optimizer):
    """Of every byte that a step can change."""
    state = [value for of in optimizer.state.values() for value in of.values()]
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return digest([*model.parameters(), *model.buffers(), *state, *gradients,
                   torch.get_rng_state()])


def checkpoint(model, ddp, optimizer):
    state = [value for of in optimizer.state_dict()["state"].values() for value in of.values()]
    return digest([*model.state_dict().values(), *ddp.state_dict().values(), *state])


class Run:
    """What a training showed."""

    def __init__(self):
        gc.collect()
        dist.barrier()
        self.before = counts.live()
        self.losses = []
        self.peaks = []
        self.saved = self.state = None

    def train(self, case, model, ddp, optimizer, one):
        for step in range(1, case.get("steps", 7) + 1):
            if hook_is_loaded():
                counts.forget_highest()
            self.losses.append(one(case, ddp, optimizer, step))
            if step == SAVED:
                self.saved = checkpoint(model, ddp, optimizer)


    def look(self, behind=False):
        """At the most bytes so far in this step; again `behind` its end."""
        if hook_is_loaded():
            del self.peaks[len(self.peaks) - behind:]
            self.peaks.append(counts.highest() - self.before)


def plain(case):
    model, ddp, optimizer = make(case)
    one_step(case, ddp, optimizer, 1)  # what kernels and gloo set up once is no training's
    del model, ddp, optimizer
    run = Run()
    model, ddp, optimizer = make(case)

    def watched(*arguments):
        losses = one_step(*arguments)
        run.look()
        return losses

    run.train(case, model, ddp, optimizer, watched)
    run.state = bits(model, optimizer)
    return run


def inside(case, peak):
    run = Run()
    model, ddp, optimizer = make(case)
    budget = tidepool.fit(ddp, optimizer, peak=peak, home=False, min_bytes=16384, evaluations=200,
                          machine=machine_of(*[case.get("link", 2e9)] * 2), **case.get("fit", {}))

    def one(*arguments):
        with budget.step():
            losses = one_step(*arguments)
            run.look()
        if budget.steps != RECORDED:  # behind that one the planner works, on what is the host's
            run.look(behind=True)
        return losses

    run.train(case, model, ddp, optimizer, one)
    shown = {"host": budget._tier.limit, "divergences": budget.divergences,
             "reactive": budget._away.moved_out, "plans": len(budget._plans), **planned(budget),
             **(loose(budget._plans[0].program) if budget._plans else {})}
    budget.close()
    run.state = bits(model, optimizer)
    return run, shown


def planned(budget):
    executors = [p.executor for p in budget._plans]
    return {"planned": sum(p.steps for p in budget._plans),
            "moved": min(sum(e.moved_out for e in executors), sum(e.moved_in for e in executors)),
            "reruns": sum(e.reruns for e in executors)}


def loose(program):
    """Collectives of the recorded step, and what they touch that might move or be made again."""
    ops = [op for op in program.recording.ops if op.name.startswith("c10d::")]
    touched = {number for op in ops for number in op.modes}
    return {"collectives": len(ops),
            "loose": sum(not program.recording.storages[n].pinned for n in touched),
            "again": sum(op.again and not touched.isdisjoint(op.modes)
                         for op in program.recording.ops)}


def compare(case):
    reference = plain(case)
    # Without the hook: a budget that the models are known to need more than.
    whole = reference.peaks[-1] if reference.peaks else (
        32 << 20 if case["model"] == "gpt" else 8 << 20)
    allowed = case["budget"] if "budget" in case else int(whole * case["share"])
    run, shown = inside(case, allowed)
    return {"whole": whole, "budget": allowed, "most": max(run.peaks, default=0),
            "losses": run.losses == reference.losses, "state": run.state == reference.state,
            "saved": run.saved == reference.saved, **shown}


def fail(case):
    """The ranks in `case["ranks"]` have a budget that cannot be."""
    model, ddp, optimizer = make(case)
    peak = 1_000_000 if dist.get_rank() in case["ranks"] else "1GiB"
    budget = tidepool.fit(ddp, optimizer, peak=peak, home=False)
    try:
        for step in range(1, 9):
            with budget.step():
                one_step(case, ddp, optimizer, step)
    except MemoryError as error:
        budget.close()
        readable = len(digest(model.parameters())) > 0
        return {"type": type(error).__name__, "error": str(error), "smallest": error.smallest,
                "step": budget.steps, "at": time.time(), "readable": readable}
    return {"error": None}


def refuse(_):
    """What fit() says of a model that is spread otherwise than fully_shard() does."""
    model = torch.nn.Linear(8, 8)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    parallelize_module(model, mesh, ColwiseParallel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        tidepool.fit(model, optimizer, peak="1GiB", home=False)
    except tidepool.TidepoolError as error:
        return {"error": str(error)}
    return {"error": None}


def agree(case):
    """What ranks are told when one fails otherwise; then all agree."""
    ranks = Ranks(None)
    bad = ValueError("odd") if case.get("odd") else tidepool.TidepoolError("no library")

    def work():
        if ranks.rank == 1:
            raise bad
        return True

    told = None
    try:
        ranks.all_or_none(work, decides=True)
    except tidepool.TidepoolError as error:
        told = str(error)
    ranks.all_or_none(lambda: ranks.rank == 0, decides=True)
    one_has_none = ranks.agreed
    ranks.all_or_none(lambda: True, decides=True)
    return {"told": told, "one_has_none": one_has_none, "agreed": ranks.agreed}


def main():
    torch.set_num_threads(1)
    start = {}
    if "TEST_STORE" in os.environ:  # else torchrun says where the others are
        start = {"init_method": os.environ["TEST_STORE"], "rank": int(os.environ["RANK"]),
                 "world_size": int(os.environ["WORLD_SIZE"])}
    dist.init_process_group("gloo", **start)
    for case in json.loads(sys.argv[1]):
        what = case.get("what", "compare")
        run = {"compare": compare, "fail": fail, "agree": agree, "refuse": refuse}[what]
        result = json.dumps({"rank": dist.get_rank(), **run(case)})
        sys.stdout.write(result + "\n")  # in one piece: ranks share a pipe under torchrun
        sys.stdout.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
