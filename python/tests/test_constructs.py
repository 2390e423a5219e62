"""What trainings are made of, row by row of the specification: served to the same bits, or refused."""

import copy
import pickle
import threading

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import models
import tidepool_torch as tidepool
from tidepool_torch.planning.planning import machine_of
from training import Ran, Style, body, differences, inside, one_step, plain, state_of

STYLE = Style()
LINKS = {"copies": 2e9, "reruns": 1e5}


def options(link=2e9, **more):
    return {"machine": machine_of(link, link, alignment=64), "min_bytes": 1024, "evaluations": 150,
            **more}


def gpt_with(loss=None, layer=None, optimizer=None):
    """A tiny GPT with another loss(model, x, y, of_before), layer(forward, x) or
    optimizer(parameters)."""
    def build():
        training = models.tiny_gpt()
        if loss is not None:
            before = training.loss
            training.loss = lambda model, x, y: loss(model, x, y, before)
        if layer is not None:
            for module in training.model.layers:
                module.forward = _around(module.forward, layer)
        if optimizer is not None:
            training.optimizer = optimizer(training.model.parameters())
        return training
    return build


def _around(forward, layer):
    return lambda x: layer(forward, x)


def retained(model, x, y, loss):
    value = loss(model, x, y)
    value.backward(retain_graph=True)
    return value


def gradient_penalty(model, x, y, loss):
    value = loss(model, x, y)
    gradients = torch.autograd.grad(value, list(model.parameters()), create_graph=True)
    return value + 0.1 * sum(g.square().sum() for g in gradients)


def asked_in_between(model, x, y, loss):
    value = loss(model, x, y)
    assert value.item() > 0
    return value * (1 + 0.001 * round(value.item()))


def late_zero_grad(model, x, y, loss):
    value = loss(model, x, y)
    for parameter in model.parameters():
        parameter.grad = None
    return value


def autocast(model, x, y, loss):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return loss(model, x, y)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return 3 * x * x * gradient


class CubeOfNumpy(torch.autograd.Function):
    """Reads raw memory."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(numpy.power(x.detach().numpy(), 3))

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return torch.from_numpy(3 * numpy.square(x.detach().numpy())) * gradient


def through(function):
    return lambda forward, x: x + 0.1 * function.apply(torch.tanh(forward(x)))


def checkpointed(reentrant):
    return lambda forward, x: checkpoint(forward, x, use_reentrant=reentrant)


def adamw(**more):
    return lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, **more)


def sgd(**more):
    return lambda parameters: torch.optim.SGD(parameters, lr=1e-2, momentum=0.9, **more)


SERVED = {
    "retain_graph": gpt_with(loss=retained),
    "double backward": gpt_with(loss=gradient_penalty),
    "item()": gpt_with(loss=asked_in_between),
    "late zero_grad": gpt_with(loss=late_zero_grad),
    "autocast bf16": gpt_with(loss=autocast),
    "Function of ops": gpt_with(layer=through(Cube)),
    "Function of numpy": gpt_with(layer=through(CubeOfNumpy)),
    "checkpoint": gpt_with(layer=checkpointed(False)),
    "reentrant checkpoint": gpt_with(layer=checkpointed(True)),
    "AdamW": gpt_with(optimizer=adamw(foreach=False)),
    "AdamW amsgrad foreach": gpt_with(optimizer=adamw(foreach=True, amsgrad=True)),
    "AdamW fused": gpt_with(optimizer=adamw(fused=True)),
    "SGD": gpt_with(optimizer=sgd(weight_decay=0.1)),
    "SGD foreach": gpt_with(optimizer=sgd(foreach=True, nesterov=True)),
    "SGD fused": gpt_with(optimizer=sgd(fused=True)),
    "Adagrad fused": gpt_with(optimizer=lambda ps: torch.optim.Adagrad(ps, fused=True)),
    "RMSprop": gpt_with(optimizer=lambda ps: torch.optim.RMSprop(ps, lr=1e-3, centered=True)),
}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("name", SERVED)
def test_a_construct_gives_the_bits_of_plain_training(name, link):
    style = Style(clip=name in ("AdamW", "SGD"))
    ran = inside(SERVED[name], 5, "65%", style, **options(LINKS[link]))
    assert differences(plain(SERVED[name], 5, style), ran) == []
    assert ran.planned_steps == 3 and ran.divergences == 0
    assert ran.moved_in + ran.reruns > 0


def test_raw_memory_of_what_is_away_is_a_clear_error():
    """A weight that a Function reads as numpy, in a step in which it is away by then."""
    class Reads(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weights):
            return x + float(sum(w.detach().numpy().sum() for w in weights))

        @staticmethod
        def backward(ctx, gradient):
            return gradient, None

    training = models.make(models.tiny_gpt)
    plainly = training.loss
    training.loss = lambda model, x, y: Reads.apply(plainly(model, x, y), list(model.parameters()))
    budget = tidepool.fit(training.model, training.optimizer, peak=320_000, report=False,
                          **options(warm_up=100))
    with pytest.raises(RuntimeError, match=r"tidepool: [\w.]+ is not on the device.*keep="):
        for n in range(4):
            one_step(training, n, STYLE, budget.step)
    budget.close()


# ---- what is refused


class Subclass(torch.Tensor):
    pass


def small():
    return nn.Sequential(nn.Linear(32, 32), nn.Linear(32, 32))


def compiled_inside():
    return nn.Sequential(nn.Linear(32, 32), torch.compile(nn.Linear(32, 32), backend="eager"))


def compiled_in_place():
    model = small()
    model[1].compile(backend="eager")
    return model


def with_subclass():
    model = small()
    model[0].weight = nn.Parameter(torch.randn(32, 32).as_subclass(Subclass))
    return model


COMPILED = ("torch.compile: a compiled model runs eagerly, without a word, under the mode that fit() "
            "needs. Next: fit() the model that is not compiled")
ON_META = ("0.weight is on meta, where this version does not train. Next: "
           "model.to_empty(device='cuda') or 'cpu'")
REFUSED = {
    "compiled": (lambda: torch.compile(small(), backend="eager"), COMPILED),
    "compiled inside": (compiled_inside, COMPILED),
    "compiled in place": (compiled_in_place, COMPILED),
    "DataParallel": (lambda: nn.DataParallel(small()),
                     "DataParallel: its replicas run in threads of their own, whose ops no budget "
                     "sees. Next: DistributedDataParallel, or the model inside it"),
    "meta": (lambda: small().to("meta"), ON_META),
    "subclass": (with_subclass, "0.weight is a Subclass, which this version does not move. Next: "
                                "plain tensors"),
    "sparse": (lambda: nn.Sequential(nn.Embedding(64, 32, sparse=True)),
               "Embedding(sparse=True): sparse gradients have no storage that could move. Next: "
               "sparse=False"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_cannot_be_served_says_why(name):
    build, text = REFUSED[name]
    model = build()
    with pytest.raises(tidepool.TidepoolError) as caught:
        tidepool.fit(model, torch.optim.SGD(model.parameters(), lr=0.1), peak="1GiB")
    assert str(caught.value) == text


def test_a_model_on_another_device_says_why(monkeypatch):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    named = [("0.weight", _Elsewhere()), *model.named_parameters()]
    monkeypatch.setattr(model, "named_parameters", lambda *_, **__: named)
    with pytest.raises(tidepool.TidepoolError) as caught:
        tidepool.fit(model, optimizer, peak="1GiB")
    assert str(caught.value) == ("0.weight is on xpu:0, where this version does not train. Next: "
                                 "model.to('cuda') or 'cpu'")


class _Elsewhere:
    """A parameter on a device of another kind, as far as fit() looks."""

    device = torch.device("xpu:0")
    is_meta = False


def after_a_refusal(build, step, text, steps=1):
    """The training whose step() raises in the last of these steps, its budget closed."""
    training = models.make(build)
    torch.manual_seed(5)
    budget = tidepool.fit(training.model, training.optimizer, peak="65%", report=False, **options())
    with pytest.raises(tidepool.TidepoolError) as caught:
        for n in range(steps):
            with budget.step():
                step(training, n)
    assert str(caught.value) == text
    budget.close()
    return training


@torch.compile(backend="eager")
def compiled_loss(logits, y):
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


@pytest.mark.parametrize("first", [1, 2])
def test_a_compiled_function_inside_the_step_is_refused(first):
    """In the first step, and in the one that is recorded."""
    def step(training, n):
        if n + 1 < first:
            one_step(training, n, STYLE)
            return
        x, y = training.batch(n)
        compiled_loss(training.model(x), y).backward()

    training = after_a_refusal(
        models.tiny_gpt, step, "torch.compile: a compiled function inside the step runs eagerly, "
        "without a word, under the mode that fit() needs. Next: call it as it is, not compiled", first)
    assert torch.isfinite(training.model.tokens.weight).all()


def test_sparse_tensors_inside_the_step_are_refused():
    def step(training, n):
        x, _ = training.batch(n)
        F.embedding(x, training.model.tokens.weight, sparse=True).sum().backward()

    after_a_refusal(models.tiny_gpt, step,
                    "a sparse tensor in the step has no storage that could move. Next: dense tensors, "
                    "and sparse=False for embeddings")


def test_a_forward_in_another_thread_is_refused_there():
    """The thread gets the error; the step's own goes on."""
    build = models.tiny_gpt
    training = models.make(build)
    torch.manual_seed(5)
    errors = []

    def forward(x):
        try:
            training.model(x)
        except tidepool.TidepoolError as error:
            errors.append(str(error))

    with tidepool.fit(training.model, training.optimizer, peak="65%", report=False,
                      **options()) as budget:
        losses = []
        for n in range(4):
            x, y = training.batch(10 * n)
            with budget.step():
                thread = threading.Thread(target=forward, args=(x,))
                thread.start()
                thread.join()
                losses.append(body(training, [(x, y)], STYLE))
        assert budget.report().moved_in > 0
    forward(x)  # behind the budget, and it is nobody's step
    assert errors == [
        "the model is called in another thread than the one whose step this is: a budget sees none of "
        "its ops, and may move what it reads. Next: call it in the thread of `with budget.step()`"] * 4
    del budget
    state = state_of(training)
    random = state.pop("random state")
    expected = plain(build, 4)
    del expected.state["random state"]
    assert differences(expected, Ran(losses, state)) == [] and random


def test_copies_of_a_model_in_a_budget_are_plain_models():
    training = models.make(models.tiny_gpt)
    with tidepool.fit(training.model, training.optimizer, peak="65%", report=False,
                      **options()) as budget:
        one_step(training, 0, STYLE, budget.step)
        copied = pickle.loads(pickle.dumps(copy.deepcopy(training.model)))
        results = []
        with budget.step():
            x, _ = training.batch(0)
            thread = threading.Thread(target=lambda: results.append(copied(x)))
            thread.start()
            thread.join()
    assert len(results) == 1
