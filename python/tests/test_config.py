"""The keywords of fit() and plan()."""

import copy
import dataclasses
import inspect
import pickle

import pytest
import torch

import tidepool_torch as tidepool
from tidepool_torch.user.config import Config

MODEL = torch.nn.Linear(2, 2)
OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.1)


def test_help_has_every_option_and_what_it_means():
    shown = inspect.signature(tidepool.fit).parameters
    for field in dataclasses.fields(Config):
        assert shown[field.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert f"    {field.name} " in tidepool.fit.__doc__
    assert shown["peak"].default is inspect.Parameter.empty and shown["seed"].default == 1
    assert "{options}" not in tidepool.fit.__doc__


@pytest.mark.parametrize("call, options, error", [
    (tidepool.fit, {}, r"fit\(\) missing a required argument: 'peak'"),
    (tidepool.fit, {"peak": "1GiB", "budget": 1}, r"fit\(\) got an unexpected keyword argument 'budget'"),
    (tidepool.plan, {"peak": "1GiB", "keep": []}, r"plan\(\) got an unexpected keyword argument 'keep'"),
])
def test_a_wrong_keyword_is_refused_as_python_refuses_it(call, options, error):
    with pytest.raises(TypeError, match=error):
        call(MODEL, OPTIMIZER, **options)


@pytest.mark.parametrize("options, error", [
    ({"peak": "-3%"}, "peak='-3%'"), ({"host": "much"}, "host='much'"), ({"keep": "weight"}, "keep='weight'"),
    ({"allow": "swap"}, "allow='swap'"), ({"allow": ()}, r"allow=\(\)"), ({"time_limit": 0}, "time_limit=0"),
    ({"evaluations": 1.5}, "evaluations=1.5"), ({"seed": -1}, "seed=-1"), ({"planner": "best"}, "planner='best'"),
    ({"host_dir": 3}, "host_dir=3"), ({"min_bytes": "x"}, "min_bytes='x'"), ({"warm_up": -1}, "warm_up=-1"),
    ({"home": "yes"}, "home='yes'"), ({"report": 2}, "report=2"), ({"machine": "gtx"}, "machine='gtx'"),
    ({"machine": {}}, "machine={}"), ({"peak": 3e7}, "a whole number above 0"),
])
def test_an_option_that_makes_no_sense_is_named(options, error):
    with pytest.raises(ValueError, match=error):
        Config(**{"peak": "1GiB", **options})


@pytest.mark.parametrize("optimizer, error", [
    ([], "optimizer: none was given"), (None, "not a NoneType"),
    (torch.optim.lr_scheduler.StepLR(OPTIMIZER, 1), "optimizer: a scheduler"),
    (torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1), "no parameter of the model")])
def test_what_is_no_optimizer_of_the_model_is_refused(optimizer, error):
    with pytest.raises(ValueError, match=error):
        tidepool.fit(MODEL, optimizer, peak="1GiB")


def test_a_budget_is_neither_copied_nor_pickled():
    with tidepool.fit(MODEL, OPTIMIZER, peak="1GiB", report=False) as budget:
        for take in (copy.deepcopy, copy.copy, pickle.dumps):
            with pytest.raises(TypeError, match="a Budget is of its process"):
                take(budget)
        with pytest.raises(ValueError, match="not a str"):
            budget.verify("x")


def test_it_holds_what_was_asked_in_bytes_and_does_not_change():
    config = Config(peak="50%", host="1KiB", min_bytes="2KiB", keep=["a"], allow=("swap",))
    assert (config.host, config.min_bytes, config.keep) == (1024, 2048, frozenset({"a"}))
    assert config.planning.swap and not config.planning.recompute
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.host = 0
    assert dataclasses.replace(config, seed=3).keep == config.keep
