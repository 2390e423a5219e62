"""Planning before a step has run: steps under fake tensors are the real ones, plan() leaves no trace,
and a first step runs by a plan, exactly and inside the budget."""

import contextlib
import copy
import functools
import gc
import random
import re

import numpy
import pytest
import torch
from torch.nn import functional as F

import models
import test_zoo
import tidepool_torch as tidepool
from tidepool_torch.recording import ahead
from tidepool_torch.base import calls, device
from tidepool_torch.recording.costs import measured_costs
from tidepool_torch.base.errors import needed_in_words
from tidepool_torch.base.memory import counts, hook_is_loaded
from tidepool_torch.planning.planning import machine_of
from tidepool_torch.recording.recording import Recorder
from tidepool_torch.running.step_mode import InterruptGate, StepMode
from tidepool_torch.recording.trained import Trained
from test_stops import StopAt, calls_of_a_step
from training import Ran, differences, on_device, state_of

needs_hook = pytest.mark.skipif(not hook_is_loaded(), reason="the allocator hook is not preloaded")

ALL = {**models.TINY, **{f"large {n}": b for n, b in models.LARGE.items()}, **test_zoo.BUILDS}


def one_step(training, batch):
    loss = training.loss(training.model, *batch)
    loss.backward()
    training.optimizer.step()
    training.optimizer.zero_grad()
    return loss.detach()


def recorded(training, step):
    """The recording of one real step."""
    trained = Trained(training.model, [training.optimizer], ())
    recorders = []
    mode = StepMode(InterruptGate())

    def run(func, args, kwargs):
        if calls.not_of_the_step(calls.tensors_in(args, kwargs)):
            return func(*args, **kwargs)
        if not recorders and calls.is_view(func):
            return func(*args, **kwargs)
        if not recorders:
            recorders.append(Recorder(trained.device, trained.persistent(), trained.gradients))
        return recorders[0].run(func, args, kwargs)

    mode.handle = run
    with mode:
        step()
    return recorders[0].finish()


def ops_of(recording):
    """Views alone are left out: indexing a fake tensor makes some that mean nothing (`x[:, 3]`)."""
    return [(func, recording.ops[index].modes, inputs, made, recording.ops[index].shapes)
            for func, index, inputs, made in recording.dispatched if index >= 0]


def storages_of(recording):
    return [(s.name, s.bytes, s.kind, s.persistent, s.pinned, s.hidden, s.born, s.freed, s.accesses)
            for s in recording.storages]


@pytest.mark.parametrize("name", ALL)
def test_a_step_under_fake_tensors_is_the_real_one(name):
    """Ops, shapes, bytes, aliases, lives; and no real step writes what no schema and no table says."""
    training = models.make(ALL[name])
    batch = training.batch(0)

    def step():
        one_step(training, batch)

    first, later = ahead.record_ahead(training.model, [training.optimizer], step, measured_costs())
    assert first is not None
    assert sum(s.persistent and s.born >= 0 for s in first.recording.storages) > 0
    step()
    real = recorded(training, step)
    assert ops_of(later.recording) == ops_of(real)
    assert storages_of(later.recording) == storages_of(real)
    if name not in ("odd", "generator"):
        assert later.recording.dispatched == real.dispatched
    assert [op.again for op in later.recording.ops] == [op.again for op in real.ops]
    missed = [op.name for fake, op in zip(later.recording.ops, real.ops)
              if op.random and op.again and not fake.random]
    assert missed == []
    assert real.notes == []


def test_a_hidden_write_is_found():
    """What the line above would say of an op that no table has."""
    with torch.library._scoped_library("tidepool_tests", "FRAGMENT") as library:
        library.define("quiet(Tensor x, Tensor hidden) -> Tensor")
        library.impl("quiet", lambda x, hidden: (x * 2, hidden.add_(1))[0],
                     "CompositeExplicitAutograd")
        x, hidden = torch.ones(8), torch.zeros(8)
        recorder = Recorder(device.HOST, [], list)
        mode = StepMode(InterruptGate())
        mode.handle = recorder.run
        with torch.no_grad(), mode:
            torch.ops.tidepool_tests.quiet(x, hidden)
    recording = recorder.finish()
    assert recording.notes == ["tidepool_tests::quiet writes an argument that its schema does not "
                               "mark"]


LOSSES = {"resnet": F.cross_entropy,
          "gpt": lambda out, y: F.cross_entropy(out.flatten(0, 1), y.flatten())}
SLOW = {"machine": machine_of(2e7, 2e7, alignment=64), "min_bytes": 1024, "evaluations": 50}


def copies_of(training):
    """state_of() a copy: numpy does not look at what is to be planned for then."""
    return state_of(copy.deepcopy(training))


def python_state(training):
    return {name: dict(module.__dict__) for name, module in training.model.named_modules()}


@pytest.mark.parametrize("name", LOSSES)
def test_plan_leaves_no_trace(name):
    training = models.make(models.TINY[name])
    x, y = training.batch(0)
    training.loss(training.model, x, y).backward()  # gradients of before stay, too
    training.optimizer.step()
    training.model.note = "mine"
    before, attributes = copies_of(training), python_state(training)
    groups = [dict(g) for g in training.optimizer.param_groups]
    gradients = {n: p.grad for n, p in training.model.named_parameters()}
    drawn = random.getstate(), numpy.random.get_state()[1].tolist()
    found = tidepool.plan(training.model, training.optimizer, sample=(x, y), loss=LOSSES[name],
                          peak="60%", **SLOW)
    assert found.feasible and found.swapped_tensors + found.recomputed_ops > 0
    assert 0 < found.floor <= found.budget < found.unlimited_peak
    assert found.predicted_overhead > 0 and found.predicted_seconds > 0
    assert f"floor {needed_in_words(found.floor)}" in str(found)
    assert copies_of(training) == before
    after = python_state(training)
    assert all(after[n].keys() == attributes[n].keys()
               and all(after[n][k] is v for k, v in attributes[n].items()) for n in attributes)
    assert [dict(g) for g in training.optimizer.param_groups] == groups
    assert all(p.grad is gradients[n] for n, p in training.model.named_parameters())
    assert (random.getstate(), numpy.random.get_state()[1].tolist()) == drawn


def test_a_step_function_that_draws_and_counts_leaves_no_trace():
    training = models.make(models.tiny_gpt)
    batch = training.batch(0)
    training.model.calls = 0

    def step():
        training.model.calls += 1
        training.model.last = one_step(training, batch)
        random.random()
        numpy.random.rand()
        for group in training.optimizer.param_groups:
            group["lr"] *= 0.5

    drawn = random.getstate(), numpy.random.get_state()[1].tolist()
    before = copies_of(training)
    tidepool.plan(training.model, training.optimizer, step, peak="60%", **SLOW)
    assert training.model.calls == 0 and not hasattr(training.model, "last")
    assert training.optimizer.param_groups[0]["lr"] == 1e-3
    assert not training.optimizer.state and copies_of(training) == before
    assert (random.getstate(), numpy.random.get_state()[1].tolist()) == drawn


@needs_hook
def test_recording_takes_no_memory_of_the_models_size():
    training = models.make(models.gpt)
    batch = training.batch(0)
    costs = measured_costs()
    gc.collect()
    begun = counts.begin()
    _, later = ahead.record_ahead(training.model, [training.optimizer],
                                  lambda: one_step(training, batch), costs)
    took = counts.most_since(begun)
    print(f"{took >> 10} KiB for a step of {later.recording.peak() >> 20} MiB")
    assert took < 2 << 20 < later.recording.peak() // 100


def test_a_budget_that_is_too_small_has_its_floor():
    training = models.make(models.tiny_gpt)
    batch = training.batch(0)

    def outlook(peak):
        return tidepool.plan(training.model, training.optimizer, lambda: one_step(training, batch),
                             peak=peak, **SLOW)

    found = outlook(60_000)
    assert not found.feasible and found.plan is None and found.predicted_seconds is None
    assert found.floor > 60_000
    assert re.match(r"cannot train inside 58.6 KiB: op \d+ \S+ needs .* smallest budget", str(found))
    assert not outlook(found.floor - 1).feasible
    assert outlook(found.floor + found.floor // 4).feasible


def values_in(training, batch):
    """A step that looks at its loss before it goes on."""
    loss = training.loss(training.model, *batch)
    if loss.item() < 1e9:
        loss.backward()
        training.optimizer.step()
    training.optimizer.zero_grad()
    return loss.detach()


def test_a_step_that_reads_values_cannot_be_planned_ahead(capsys):
    training = models.make(models.tiny_gpt)
    batch = training.batch(0)
    before = state_of(training)
    with pytest.raises(ahead.CannotPlanAhead, match=r"_local_scalar_dense.*depends on values.* "
                                                    r"\(test_ahead.py:\d+\)\. Next: .*"
                                                    r"plan\(..., run=True\)"):
        tidepool.plan(training.model, training.optimizer, lambda: values_in(training, batch),
                      peak="60%")
    assert state_of(training) == before
    ran, steps, _ = inside(models.tiny_gpt, "60%", values_in, **SLOW)
    assert differences(plain(models.tiny_gpt, values_in), ran) == []
    assert [s.planned for s in steps] == [False, False, True, True, True]
    said = capsys.readouterr().err
    assert said.count("no plan ahead of time: aten._local_scalar_dense.default: what this op") == 1
    assert "step 1 runs reactively" not in said  # the budget is a share of what is not known yet


def in_numpy(training, batch):
    loss = one_step(training, batch)
    assert loss.numpy() > 0
    return loss


def test_a_step_that_fake_tensors_do_not_serve(capsys):
    ran, steps, _ = inside(models.tiny_gpt, "60%", in_numpy, steps=3, **SLOW)
    assert differences(plain(models.tiny_gpt, in_numpy, steps=3), ran) == []
    assert [s.planned for s in steps] == [False, False, True]
    said = capsys.readouterr().err
    assert re.search(r"no plan ahead of time: with tensors that have no bytes the step ended in a "
                     r"\w+: .*numpy", said)


class Stopped(Exception):
    pass


def stopped(build, calls_before, link):
    """The state behind a first step that an exception ends before that call, and bytes moved."""
    training = models.make(build)
    torch.manual_seed(5)
    sample = training.batch(0)
    budget = None
    if link is not None:
        budget = tidepool.fit(
            training.model, training.optimizer, peak="55%",
            **{**SLOW, "machine": machine_of(link, link, alignment=64)},
            step=lambda: one_step(training, sample))
    moved = 0
    batch = training.batch(1)
    with pytest.raises(Stopped):
        with budget.step() if budget else contextlib.nullcontext(), StopAt(calls_before, Stopped):
            one_step(training, batch)
    if budget is not None:
        budget.close()
        moved = budget.report().moved_out + budget.report().moved_in
    # The optimizer's state may be there in part, with which PyTorch cannot go on either.
    return Ran([], state_of(training)), moved


@pytest.mark.parametrize("name", ["gpt", "resnet"])
def test_an_exception_in_a_first_step_leaves_what_plain_training_has(name):
    """While the optimizer's state is there in part, too."""
    build = models.TINY[name]
    count = calls_of_a_step(build)
    moved = 0
    for calls_before in range(5, count, max(1, count // 9)):
        expected, _ = stopped(build, calls_before, None)
        ran, more = stopped(build, calls_before, 2e7)
        moved += more
        assert differences(expected, ran) == [], calls_before
    assert moved > 0


@pytest.mark.parametrize("arguments,words", [
    ({"sample": (1, 2)}, "with loss="), ({"loss": F.mse_loss}, "a batch (x, y)"),
    ({"step": 3}, "without arguments, not a int"), ({"sample": (1, 2), "step": print}, "do not go")])
def test_arguments_that_make_no_sense(arguments, words):
    training = models.make(models.tiny_gpt)
    for call in (tidepool.fit, tidepool.plan):
        with pytest.raises(ValueError, match=re.escape(words)):
            call(training.model, training.optimizer, peak="1GiB", **arguments)


# ---- first steps


class Step:
    """What one step did."""

    def __init__(self, budget, peak):
        planned = budget._runner._state.planned
        self.planned = planned is not None
        self.ahead = self.planned and planned.ahead
        self.moved = planned.executor.moved_in + planned.executor.moved_out if planned else 0
        self.reruns = planned.executor.reruns if planned else 0
        self.peak = peak


def plain(build, step=one_step, steps=5):
    training = models.make(build)
    torch.manual_seed(5)
    losses = [step(training, training.batch(n)) for n in range(steps)]
    return Ran([float(loss) for loss in losses], state_of(training))


def inside(build, peak, step=one_step, steps=5, expected=None, trained=0, **options):
    """(Ran, Steps, budget); `expected` is the step that fit() is told of, `trained` how many steps
    run before there is a budget."""
    training = models.make(build)
    torch.manual_seed(5)
    losses = [step(training, training.batch(n)) for n in range(trained)]
    sample = training.batch(0)
    budget = tidepool.fit(training.model, training.optimizer, peak=peak,
                          step=lambda: (expected or step)(training, sample), **options)
    found = []
    for n in range(trained, steps):
        batch = training.batch(n)
        if hook_is_loaded():
            gc.collect()
            counts.restart()
            base = counts.live() - on_device(budget) - sum(t.nbytes for t in batch)
        with budget.step():
            losses.append(step(training, batch))
        found.append(Step(budget, counts.peak() - base if hook_is_loaded() else 0))
        del batch
    budget.close()
    return Ran([float(loss) for loss in losses], state_of(training)), found, budget


@pytest.mark.parametrize("name", models.TINY)
@pytest.mark.parametrize("trained", [0, 2])
def test_first_steps_by_a_plan_are_exact(name, trained, capsys):
    expected = plain(models.TINY[name], steps=7)
    ran, steps, budget = inside(models.TINY[name], "55%", steps=7, trained=trained, **SLOW)
    assert differences(expected, ran) == []
    first = [True] if trained else [True, True]  # that makes the optimizer's state; a later one
    rest = 7 - trained - len(first) - 1
    assert [s.ahead for s in steps] == first + [False] * (rest + 1)
    assert [s.planned for s in steps] == first + [False] + [True] * rest
    assert steps[0].moved + steps[0].reruns > 0
    assert budget.divergences == 0
    assert budget.report().planned_steps == len(first) + rest
    said = capsys.readouterr().err
    assert "reactively" not in said
    assert said.count("was recorded: from here on plans come from measured times and workspaces") == 1


LARGER_BATCHES = {"resnet": lambda: models.tiny_resnet(32), "gpt": lambda: models.tiny_gpt(32)}


@pytest.mark.parametrize("name", LARGER_BATCHES)
def test_first_steps_compute_again(name):
    """With dropout: random numbers, of which a fake step draws none, are drawn again."""
    again = {**SLOW, "evaluations": 200, "allow": ("recompute",)}
    ran, steps, _ = inside(LARGER_BATCHES[name], "82%", steps=3, **again)
    assert differences(plain(LARGER_BATCHES[name], steps=3), ran) == []
    assert steps[0].ahead and steps[1].ahead and steps[1].reruns > 0


@needs_hook
@pytest.mark.parametrize("name,peak", [("resnet", "88.0MiB"), ("resnet", "48.4MiB"),
                                       ("gpt", "153.4MiB"), ("gpt", "64.0MiB")])
def test_the_first_step_stays_inside(name, peak):
    """Kernels have run by then: what they keep for good from their first run on is no budget's."""
    expected = plain(models.LARGE[name], steps=3)
    ran, steps, budget = inside(models.LARGE[name], peak, steps=3, time_limit=4)
    print(name, peak, [f"{s.peak / 2**20:.1f}" for s in steps])
    assert differences(expected, ran) == []
    assert steps[0].ahead and steps[1].ahead
    assert steps[0].moved > 0
    assert max(s.peak for s in steps[:2]) <= budget.peak


def clipping(training, batch):
    loss = training.loss(training.model, *batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(training.model.parameters(), 0.5)
    training.optimizer.step()
    training.optimizer.zero_grad()
    return loss.detach()


def test_another_step_than_the_one_expected(capsys):
    """It leaves the plan, runs reactively, and is recorded as if there had been none."""
    build = models.tiny_gpt
    ran, steps, budget = inside(build, "60%", clipping, expected=one_step, **SLOW)
    assert differences(plain(build, clipping), ran) == []
    assert [s.planned for s in steps] == [False, False, True, True, True]
    assert budget.divergences == 1
    said = capsys.readouterr().err
    assert re.search(r"step 1 differs from the plan at op \d+ .*running reactively", said)
    assert "measured times" not in said


def of_batch(size):
    def step(training, batch):
        return one_step(training, [t[:size] for t in batch])

    return step


@pytest.mark.parametrize("told,comes", [(4, 8), (8, 4)])
@pytest.mark.parametrize("peak", ["70%", "1MiB"])
def test_a_sample_of_another_batch(told, comes, peak, capsys):
    """A share is one of the steps that come; no step is outside of an absolute budget unseen."""
    steps_of = {"step": of_batch(comes), "expected": of_batch(told)}
    build = functools.partial(models.tiny_gpt, 8)
    ran, steps, budget = inside(build, peak, **steps_of, **SLOW)
    assert differences(plain(build, of_batch(comes)), ran) == []
    assert [s.planned for s in steps[:2]] == [False, False]
    said = capsys.readouterr().err
    if peak == "70%":
        assert all(s.planned for s in steps[2:]) and steps[2].moved + steps[2].reruns > 0
        whole = budget.report().unlimited_peak
        assert budget.peak == int(whole * 0.7)
        assert re.search(r"the budget is [\d.]+ \w+ of the [\d.]+ \w+ that a step takes as the one "
                         "given; where none comes it is a share of the first", said)


@pytest.mark.parametrize("told", [one_step, values_in])
def test_a_share_is_taken_once(told):
    """Also where no plan ahead came of it; plans are for one budget, whatever comes later."""
    training = models.make(functools.partial(models.tiny_gpt, 8))
    sample = training.batch(0)
    budget = tidepool.fit(training.model, training.optimizer, peak="70%", report=False,
                          step=lambda: told(training, sample), **SLOW)
    peaks = []
    for size in (8, 8, 8, 4, 4, 4):
        with budget.step():
            of_batch(size)(training, sample)
        peaks.append(budget.peak)
    assert len(budget._plans) == 2 and len(set(peaks[1:])) == 1
    budget.close()


def test_gradients_that_are_kept_over_the_end_of_a_step():
    """A plan of steps that begin without gradients does not serve one that begins with them."""
    def kept(training, batch):
        training.loss(training.model, *batch).backward()
        training.optimizer.step()
        for parameter in training.model.parameters():
            parameter.grad = parameter.grad * 1 if parameter.grad is not None else None
        return training.model.head.weight.detach()[0, 0].clone()

    build = models.tiny_gpt
    ran, steps, _ = inside(build, "1MiB", kept, expected=one_step, **SLOW)
    assert differences(plain(build, kept), ran) == []
    assert not any(s.ahead for s in steps[1:])


def test_a_plan_that_does_not_exist_is_said_once(capsys):
    training = models.make(models.tiny_gpt)
    batch = training.batch(0)
    budget = tidepool.fit(training.model, training.optimizer, peak=60_000,
                          step=lambda: one_step(training, batch), **SLOW)
    said = capsys.readouterr().err
    assert re.search(r"no plan ahead of time with 1\.8 KiB left for kernels: cannot train inside",
                     said)
    assert budget.plan is None
    budget.close()
