"""What steps that vary cost inside a budget: a mixture of experts, whose routing decides the sizes of each step.

    python python/bench/varying.py [--steps 40] [--peak 30MiB]

Processor time of all threads a step, plainly and inside the budget, of the same trainings; whether the losses
are the same. Needs TIDEPOOL_LIBRARY, or the wheel.
"""

import argparse
import contextlib
import os
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

import tidepool_torch as tidepool  # noqa: E402

_TOKENS, _WORDS, _WIDTH, _LAYERS, _EXPERTS = 1024, 512, 128, 4, 8


class Experts(nn.Module):
    """Each token goes to the expert that its gate likes best."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(_WIDTH, _EXPERTS)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(_WIDTH, 4 * _WIDTH), nn.GELU(), nn.Linear(4 * _WIDTH, _WIDTH))
            for _ in range(_EXPERTS))

    def forward(self, x):
        weight, chosen = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            at = (chosen == number).nonzero().squeeze(1)
            if len(at):
                out = out.index_add(0, at, expert(x[at]) * weight[at, None])
        return x + out


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(_WORDS, _WIDTH)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(_WIDTH), Experts()) for _ in range(_LAYERS))
        self.head = nn.Linear(_WIDTH, _WORDS)

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def train(steps, peak=None):
    """(seconds of processors a step, losses, Report)"""
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    budget = tidepool.fit(model, optimizer, peak=peak, report=False) if peak else None
    draws = torch.Generator().manual_seed(1)
    seconds, losses = [], []
    for _ in range(steps):
        ids = torch.randint(0, _WORDS, (_TOKENS + 1,), generator=draws)
        begun = time.process_time()
        with budget.step() if budget else contextlib.nullcontext():
            loss = F.cross_entropy(model(ids[:-1]), ids[1:])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        seconds.append(time.process_time() - begun)
    report = budget.report() if budget else None
    if budget:
        budget.close()
    return seconds, losses, report


def _middle(seconds):
    return statistics.median(seconds) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--peak", default="30MiB")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    plainly, expected, _ = train(asked.steps)
    inside, losses, report = train(asked.steps, asked.peak)
    print(f"plain {_middle(plainly[2:]):.0f} ms a step; inside {asked.peak}: steps 4 to 10 {_middle(inside[3:10]):.0f} ms, "
          f"the last ten {_middle(inside[-10:]):.0f}; {report.planned_steps} of {report.steps} planned; losses "
          f"{'the same' if losses == expected else 'DIFFER'}")


if __name__ == "__main__":
    main()
