"""Gradients of the last step that are there while the next one begins: zero_grad() between the
forward and the backward pass, as tutorials write it."""

import pytest
import torch
from torch import nn

import tidepool_torch as tidepool
from tidepool_torch.user import recorded
from tidepool_torch.planning.planning import machine_of

WIDTH, LAYERS, BATCH = 256, 6, 64
GRADIENTS = LAYERS * WIDTH * WIDTH * 4
MACHINE = machine_of(2e9, 2e9)


def training():
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
                            for _ in range(LAYERS)])
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def step_of(model, optimizer):
    def step():
        loss = model(torch.randn(BATCH, WIDTH)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def test_they_are_tensors_with_a_life():
    model, optimizer = training()
    program = recorded.record(model, [optimizer], step_of(model, optimizer), "", 1024, True)
    old = [t for t in program.json["tensors"] if t["name"].endswith(".grad.of_before")]
    assert sum(t["bytes"] for t in old) >= GRADIENTS
    assert program.small < GRADIENTS // 10
    ops = program.json["ops"]
    backward = next(k for k, op in enumerate(ops) if op["name"].endswith("_backward"))
    assert all(0 < t["released_at"] < backward for t in old)


def test_a_budget_without_them_is_enough():
    expected = [step_of(*training())() for _ in range(1)]
    model, optimizer = training()
    step = step_of(model, optimizer)
    expected = [step() for _ in range(5)]
    model, optimizer = training()
    # Weights, old gradients and the batch's activations; no momentum.
    peak = 2 * GRADIENTS + (1 << 20)
    with tidepool.fit(model, optimizer, peak=peak, machine=MACHINE, evaluations=50, min_bytes=1024,
                      report=False) as budget:
        step = step_of(model, optimizer)
        losses = []
        for _ in range(5):
            with budget.step():
                losses.append(step())
        assert budget.report().planned_steps == 3 and budget.divergences == 0
    assert losses == expected


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_that_go_before_the_first_op_are_none_of_it(to_none):
    model, optimizer = training()

    def step():
        optimizer.zero_grad(set_to_none=to_none)
        model(torch.randn(BATCH, WIDTH)).square().mean().backward()
        optimizer.step()

    program = recorded.record(model, [optimizer], step, "", 1024, True)
    old = [t for t in program.json["tensors"] if t["name"].endswith(".grad.of_before")]
    assert len(old) == (0 if to_none else 2 * LAYERS)
