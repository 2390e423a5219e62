"""The first step of a process, whose budget does not know yet what PyTorch's kernels keep for good."""

import os
import subprocess
import sys

import torch

import tidepool_torch as tidepool

# Eight layers take 26 MiB and have a floor of 6.1; their kernels keep some 7 MiB.
SCRIPT = """
import sys, torch
import tidepool_torch as tidepool
from torch import nn
import torch.nn.functional as F
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(8)])
optimizer = torch.optim.Adam(model.parameters())
budget = tidepool.fit(model, optimizer, peak=sys.argv[1], evaluations=50)
for _ in range(3):
    x, y = torch.randn(1024, 256), torch.randn(1024, 256)
    with budget.step():
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(loss.item(), [float(p.detach().numpy().sum()) for p in model.parameters()])
print("moved", budget.report().moved_in > 0)
"""


def trained(peak):
    done = subprocess.run([sys.executable, "-c", SCRIPT, peak], capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_what_kernels_keep_is_no_part_of_the_first_step():
    expected, _ = trained("1GiB")
    inside, said = trained("10MiB")
    assert inside[:-1] == expected[:-1]
    assert inside[-1] == "moved True"
    assert "more than the budget" not in said


def test_what_is_kept_of_a_step_is_there_behind_it_whatever_the_budget(capfd):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)])
    optimizer = torch.optim.Adam(model.parameters())
    with tidepool.fit(model, optimizer, peak="1MiB") as budget:
        with budget.step():
            hidden = model(torch.randn(1024, 256))
            hidden.square().mean().backward()
            optimizer.step()
        away = {kind for _, kind, s in budget._trained.persistent()
                if budget._storages.is_away(s)}
        assert away == {"optimizer_state"}
        assert hidden.detach().numpy().shape == (1024, 256)
        assert all(p.grad.numpy().any() for p in model.parameters())
    said = capfd.readouterr().err
    assert said.count("between steps, more than the budget. Next: ") == 1
