"""The package on the device: verdicts of verify(), the cap, PyTorch's own finder of missing waits."""

import torch
from torch import nn

from .facts import IS_SIM, check, device, module, say
from .trainings import OPTIONS, make, measured


def _small_training():
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Conv2d(32 if i else 3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                            nn.Dropout(0.1)) for i in range(8)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)).to(device())
    optimizer = torch.optim.AdamW(model.parameters())
    rows, side = (2, 16) if IS_SIM else (64, 64)
    x, y = torch.randn(rows, 3, side, side).to(device()), torch.randint(0, 10, (rows,)).to(device())

    def step():
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return model, optimizer, step


def package_small():
    """Every bit of a small training, by verify()."""
    import tidepool_torch as tidepool

    def verdict(**options):
        model, optimizer, step = _small_training()
        with tidepool.fit(model, optimizer, **{**OPTIONS, "time_limit": 2.0, **options}) as budget:
            for _ in range(4):
                with budget.step():
                    step()
            return {"verdict": str(budget.verify(step)), "report": str(budget.report())[:300]}

    for share in ("75%", "60%", "45%"):
        check("package_small", share, lambda share=share: verdict(peak=share))
    check("package_small", "60%, copies only", lambda: verdict(peak="60%", allow=("swap",)))


def cap():
    """Planned steps under the allocator's cap, which fit() sets: no retry, no error."""
    import tidepool_torch as tidepool
    model, optimizer, step, _ = make("gpt2_bf16")
    before = module().memory_allocated()
    with tidepool.fit(model, optimizer, peak="60%", **OPTIONS) as budget:
        for i in range(6):
            with budget.step():
                step(i)
        module().empty_cache()
        found = measured(step, 4, budget.step)
        say("cap", budget=budget.peak, before=before, **{k: v for k, v in found.items() if k != "losses"})


def sanitizer():
    """What PyTorch's finder of missing waits says of planned steps; it does not know our aliases."""
    if IS_SIM:
        say("sanitizer", skipped="sim finds races itself")
        return
    import torch.cuda._sanitizer as finder
    finder.enable_cuda_sanitizer()
    package_small()
