"""Trainings on "sim" inside a budget have the bits of plain ones, keep the budget and have no race."""

import pytest

import simgpu
from sim_training import Case, differences, inside, plain

POLICIES = ("eager", "lazy", "last", "random")


def check(case, ran):
    assert differences(plain(case), ran) == []
    assert simgpu.races() == []
    assert ran.planned_steps > 0
    assert ran.moved + ran.reruns > 0
    assert ran.divergences == 0
    assert ran.peak <= ran.budget
    assert ran.waits == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "foreach", "fused"])
@pytest.mark.parametrize("model", ["resnet", "gpt", "llama", "lstm", "unet"])
def test_models_and_optimizers(model, optimizer, policy):
    case = Case(model, optimizer)
    check(case, inside(case, 0.7, policy))
