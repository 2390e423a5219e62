"""Ops over lists of tensors: in groups they give the same bits, and steps fit into less."""

import pytest
import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.planning import planner
from tidepool_torch.running import step_mode
from tidepool_torch.base.list_ops import groups_of, joined, lists_of
from tidepool_torch.planning.planning import machine_of
from training import Style, bits, body, differences, inside, plain

LINK = machine_of(2e7, 2e7, alignment=64)


def list_ops():
    """Every op of PyTorch's that is run in groups."""
    found = []
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith(("aten::_foreach_", "aten::_fused_", "aten::_amp_foreach_")):
            packet = getattr(torch.ops.aten, schema.name[6:])
            func = getattr(packet, schema.overload_name or "default")
            if lists_of(func):
                found.append(func)
    return sorted(set(found), key=str)


SHAPES = [(3,), (257, 33), (1,), (64, 65), (8191,), (17, 5, 3), (40, 40)]
VALUES = {"lr": 1e-2, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "momentum": 0.9, "dampening": 0.1,
          "nesterov": False, "is_first_step": False, "maximize": False, "amsgrad": True,
          "lr_decay": 0.1, "weight_decay": 0.1}


def arguments_of(func):
    """Drawn ones; None where this test knows none of a kind."""
    args, kwargs = [], {}
    for a in func._schema.arguments:
        kind = str(a.type)
        if a.name == "state_steps":
            value = [torch.tensor(float(i + 2)) for i in range(len(SHAPES))]
        elif kind == "List[Tensor]":
            value = [torch.rand(shape) + 0.1 for shape in SHAPES]
        elif kind == "List[number]":
            value = [float(x) for x in torch.rand(len(SHAPES)) + 0.1]
        elif kind == "Tensor":
            value = torch.tensor(0.5)
        elif a.name in VALUES:
            value = VALUES[a.name]
        elif a.has_default_value():
            continue
        elif kind == "number":
            value = 0.75
        else:
            return None
        if a.kwarg_only:
            kwargs[a.name] = value
        else:
            args.append(value)
    return args, kwargs


def copied(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    return [copied(v) for v in value] if isinstance(value, list) else value


def all_bits(func, args, kwargs, out):
    tensors = []
    for value in [*args, *kwargs.values(), out]:
        tensors += [v for v in (value if isinstance(value, list) else [value])
                    if isinstance(v, torch.Tensor)]
    return [bits(t) for t in tensors]


@pytest.mark.filterwarnings("ignore:An output with one or more")
def test_groups_of_every_list_op_give_the_bits_of_one_call():
    torch.manual_seed(0)
    tried, grouped = [], list_ops()
    for func in grouped:
        drawn = arguments_of(func)
        if drawn is None:
            continue
        whole = [copied(a) for a in drawn[0]], {k: copied(v) for k, v in drawn[1].items()}
        parts = [copied(a) for a in drawn[0]], {k: copied(v) for k, v in drawn[1].items()}
        try:
            expected = func(*whole[0], **whole[1])
        except (RuntimeError, NotImplementedError):
            continue  # not of floats, or with no kernel for the CPU
        groups = groups_of(func, *parts)
        assert len(groups) > 2, func
        out = joined([func(*a, **k) for a, k in groups])
        assert all_bits(func, *whole, expected) == all_bits(func, *parts, out), func
        tried.append(func._schema.name[6:])
    assert {"_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_", "_foreach_add_",
            "_foreach_addcdiv_", "_foreach_addcmul_", "_foreach_lerp_", "_foreach_sqrt",
            "_foreach_norm", "_foreach_mul_", "_foreach_div_", "_foreach_zero_", "_foreach_copy_",
            "_amp_foreach_non_finite_check_and_unscale_"} <= set(tried)
    assert len(tried) > 100 and len(tried) > 0.8 * len(grouped)


def test_what_does_not_part_stays_whole():
    add = torch.ops.aten._foreach_add_.Scalar
    assert groups_of(add, ([torch.ones(4)], 1), {}) is None
    assert groups_of(add, ([torch.ones(4, device="meta")] * 2, 1), {}) is None
    assert lists_of(torch.ops.aten.cat.default) == ()
    assert lists_of(torch.ops.aten._foreach_addcdiv_.Tensor) == ()


FOREACH = {"foreach": {"foreach": True}, "fused": {"fused": True}}


def floor_of(build):
    """Smallest budget of any plan of a step with gradients that are clipped."""
    training = models.make(build)
    batch = training.batch(0)
    program = tidepool.record(training.model, training.optimizer,
                              lambda: body(training, [batch], Style(clip=True)), min_bytes=1024)
    return planner.smallest_budget(program, LINK)[0]


@pytest.mark.parametrize("name", FOREACH)
def test_lists_are_the_floor_no_longer(name, monkeypatch):
    one_by_one = floor_of(models.gpt_with(foreach=False))
    in_groups = floor_of(models.gpt_with(**FOREACH[name]))
    monkeypatch.setattr(step_mode, "groups_of", lambda *call: None)
    whole = floor_of(models.gpt_with(**FOREACH[name]))
    print(name, "one by one", one_by_one, "in groups", in_groups, "whole", whole)
    assert in_groups < 0.8 * whole
    if name == "fused":  # with foreach the optimizer holds lists of what it makes on the way
        assert in_groups < 1.1 * one_by_one


@pytest.mark.parametrize("link", [1e5, 2e7])
@pytest.mark.parametrize("name", FOREACH)
@pytest.mark.parametrize("warm_up", [1, 100])
def test_steps_below_the_old_floor_are_exact(name, link, warm_up):
    """With 100 the steps run reactively."""
    build = models.gpt_with(**FOREACH[name])
    style = Style(clip=True)
    budget = int(1.25 * floor_of(build))
    ran = inside(build, 5, budget, style, min_bytes=1024, evaluations=100, warm_up=warm_up,
                 machine=machine_of(link, link, alignment=64))
    assert differences(plain(build, 5, style), ran) == []
    assert (ran.moved_in > 0 and ran.planned_steps == 3) or warm_up == 100
