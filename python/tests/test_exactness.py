"""Plans of every kind, executed: bits equal to plain training, and inside the budget."""

import collections
import os
import random

import pytest

import models
import tidepool_torch as tidepool
from tidepool_torch.planning.planning import machine_of
from training import Style, differences, inside, plain

# Links so slow that nearly everything is computed again, and so fast that nearly all is swapped.
LINKS = {"slow": 1e5, "middle": 2e7, "fast": 2e9}

STYLES = {
    "plain": Style(),
    "zero first": Style(zero_first=True),
    "micro-batches": Style(micro_batches=2, clip=True),
    "batch inside": Style(batch_inside=True),
    "gradients stay": Style(zero_first=True, to_none=False),
}


def options(link, planner="auto", seed=1, **more):
    return {"machine": machine_of(LINKS[link], LINKS[link], alignment=64), "min_bytes": 1024,
            "planner": planner, "seed": seed, "evaluations": 200, **more}


@pytest.mark.parametrize("name", models.TINY)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("style", STYLES)
def test_steps_in_a_budget_give_the_bits_of_steps_without(name, link, style):
    build = models.TINY[name]
    expected = plain(build, 5, STYLES[style])
    ran = inside(build, 5, "60%", STYLES[style], **options(link))
    assert differences(expected, ran) == []
    assert ran.planned_steps == 3
    assert ran.divergences == 0
    if link == "fast":
        assert ran.moved_out > 0 and ran.moved_in > 0
    assert ran.moved_out + ran.reruns > 0


@pytest.mark.parametrize("name", models.TINY)
def test_ops_that_run_again_give_the_same_bits(name):
    """Nothing may be copied, so all that a plan saves is computed again."""
    expected = plain(models.TINY[name], 4)
    # A GPT this small holds most at its optimizer's step, where nothing can be computed again.
    share = "98%" if name == "gpt" else "95%"
    ran = inside(models.TINY[name], 4, share, **options("fast", allow=("recompute",)))
    assert differences(expected, ran) == []
    assert ran.planned_steps == 2
    assert ran.reruns > 0 and ran.moved_in == 0


# TIDEPOOL_PLANS=125 makes them 500.
SEEDS = int(os.environ.get("TIDEPOOL_PLANS", "6"))


@pytest.mark.parametrize("name", models.TINY)
def test_plans_of_any_planner_give_the_same_bits(name):
    """`random` decides by seed alone, so its plans do what no good plan would."""
    drawn = random.Random(name)
    tally = collections.Counter()
    for seed in range(1, SEEDS + 1):
        style = drawn.choice(list(STYLES.values()))
        link = drawn.choice(list(LINKS))
        planner = drawn.choice(["random", "random", "auto", "autoswap", "home", "capuchin"])
        share = drawn.choice(["35%", "45%", "55%", "70%", "85%"])
        min_bytes = drawn.choice([64, 1024, 4096])
        more = {"min_bytes": min_bytes}
        if seed % 3 == 0:
            # Else few of the plans compute again: on most links copies are as good.
            more["allow"] = ("recompute",)
            planner, share = "auto", "98%" if name == "gpt" else "95%"
        expected = plain(models.TINY[name], 4, style)
        what = (name, seed, link, planner, share, min_bytes, style)
        try:
            ran = inside(models.TINY[name], 4, share, style,
                         **{**options(link, planner, seed), **more})
        except tidepool.BudgetInfeasible:
            tally["infeasible"] += 1
            continue
        assert differences(expected, ran) == [], what
        assert ran.divergences == 0, what
        tally["plans"] += 1
        tally["with reruns"] += ran.reruns > 0
        tally["with copies"] += ran.moved_in > 0
        tally["with both"] += ran.reruns > 0 and ran.moved_in > 0
    print(name, dict(tally))
    assert tally["plans"] > 0 and tally["with copies"] > 0
