"""The native module: steps whose calls pass without Python give the bits of plain training, and
Python sees all that it needs to."""

import contextlib
import os

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import models
import tidepool_torch as tidepool
from tidepool_torch.base import calls
from tidepool_torch.running import native
from tidepool_torch.running.growth import Growth
from tidepool_torch.planning.planning import machine_of
from tidepool_torch.running.schedule import NOT_PASSING
from tidepool_torch.running.step_mode import InterruptGate, StepMode
from test_exactness import STYLES, options
from training import Ran, Style, body, differences, inside, one_step, plain, state_of

MODULE, FOUND = native.find()
needs_module = pytest.mark.skipif(MODULE is None, reason=f"tidepool-torch-native: {FOUND}")

STYLE = Style()


@pytest.fixture
def passed(monkeypatch):
    """Calls that passed without Python since the test began."""
    all_watched = {}
    watched = native.NativeStepMode.watched

    def noting(self, executor):
        found = watched(self, executor)
        all_watched[id(found)] = found
        return found

    monkeypatch.setattr(native.NativeStepMode, "watched", noting)
    return lambda: sum(w.passed for w in all_watched.values())


@contextlib.contextmanager
def without_module():
    os.environ["TIDEPOOL_NATIVE"] = "0"
    try:
        yield
    finally:
        del os.environ["TIDEPOOL_NATIVE"]


def fit(training, link=2e7, **more):
    return tidepool.fit(training.model, training.optimizer, report=False, evaluations=200,
                        min_bytes=1024, machine=machine_of(link, link, alignment=64),
                        **{"peak": "60%", **more})


def trained(build, steps, **more):
    """A training behind `steps` steps inside a budget."""
    training = models.make(build)
    torch.manual_seed(5)
    budget = fit(training, **more)
    losses = [one_step(training, n, STYLE, budget.step) for n in range(steps)]
    return training, budget, losses


# ---- the same bits

@needs_module
@pytest.mark.parametrize("name", models.TINY)
@pytest.mark.parametrize("link", ("slow", "fast"))
@pytest.mark.parametrize("style", ("plain", "micro-batches", "gradients stay"))
def test_steps_give_the_bits_of_steps_without(name, link, style, passed):
    build = models.TINY[name]
    expected = plain(build, 5, STYLES[style])
    ran = inside(build, 5, "60%", STYLES[style], **options(link))
    assert differences(expected, ran) == []
    assert ran.planned_steps == 3 and ran.divergences == 0
    assert ran.moved_out + ran.reruns > 0
    assert passed() > 0


@needs_module
def test_calls_over_lists_give_the_bits_of_calls_without(passed):
    """Each is several of the plan's, so none passes."""
    def build():
        made = models.tiny_gpt()
        made.optimizer = torch.optim.AdamW(made.model.parameters(), foreach=True)
        return made

    expected = plain(build, 5)
    ran = inside(build, 5, "75%", **options("fast"))
    assert differences(expected, ran) == []
    assert ran.planned_steps == 3 and ran.divergences == 0
    assert ran.moved_out > 0 and passed() > 0


@needs_module
@pytest.mark.parametrize("name", models.TINY)
def test_an_exception_anywhere_leaves_what_plain_training_has(name, passed):
    """Raised by hooks: a mode of the test's own above the step's would see the calls first."""
    build = models.TINY[name]
    moved = 0
    for place in range(0, hooks_of_a_step(build), 3):
        expected, _ = stopped(build, place, False)
        found, bytes_moved = stopped(build, place, True)
        assert differences(expected, found) == [], place
        moved += bytes_moved
    assert moved > 0 and passed() > 0


class Stop(Exception):
    pass


@contextlib.contextmanager
def hooked(model, hook):
    """hook() at the end of each module's forward, and when its output's gradient comes."""
    def behind(module, args, out):
        hook()
        if isinstance(out, torch.Tensor) and out.requires_grad:
            out.register_hook(lambda gradient: hook())

    handles = [m.register_forward_hook(behind) for m in model.modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def hooks_of_a_step(build):
    training = models.make(build)
    counted = []
    with hooked(training.model, lambda: counted.append(0)):
        one_step(training, 0, STYLE)
    return len(counted)


def stopped(build, place, inside_a_budget):
    if inside_a_budget:
        training, budget, losses = trained(build, 3)
    else:
        training, budget = models.make(build), None
        torch.manual_seed(5)
        losses = [one_step(training, n, STYLE) for n in range(3)]
    left = [place]

    def count():
        left[0] -= 1
        if left[0] < 0:
            raise Stop

    batch = training.batch(30)
    with hooked(training.model, count), pytest.raises(Stop):
        with budget.step() if budget else contextlib.nullcontext():
            body(training, [batch], STYLE)
    moved = 0
    if budget:
        moved = budget._plans[0].executor.moved_in + budget._plans[0].executor.reruns
        budget.close()
    state = state_of(training)
    training.optimizer.zero_grad(set_to_none=True)
    losses.append(one_step(training, 4, STYLE))
    return Ran(losses, {**state, **{f"later {k}": v for k, v in state_of(training).items()}}), moved


# ---- what Python sees

@needs_module
@pytest.mark.parametrize("name", models.TINY)
def test_python_sees_only_calls_that_need_it(name, monkeypatch, passed):
    arrived = []
    dispatch = StepMode.__torch_dispatch__

    def counting(self, func, types, args=(), kwargs=None):
        if budget and budget.plan is not None:
            arrived.append((func, self.walk and self.walk.calls[self.walk.position]))
        return dispatch(self, func, types, args, kwargs)

    monkeypatch.setattr(StepMode, "__torch_dispatch__", counting)
    counts = []
    for there in (True, False):
        with contextlib.nullcontext() if there else without_module():
            budget = None
            training, budget, _ = trained(models.TINY[name], 2)
        arrived.clear()
        before = passed()
        one_step(training, 2, STYLE, budget.step)
        assert budget.divergences == 0
        counts.append((len(arrived), passed() - before))
        if there:
            # The first calls come to Python in any case: views, and the op that chooses the plan.
            assert all(expected[0] is func and expected[1] is not None
                       for func, expected in arrived if expected is not None)
            first = [calls.is_view(func) for func, expected in arrived if expected is None]
            assert all(first[:-1]) and not first[-1]
        budget.close()
    (with_module, of_module), (without, of_none) = counts
    assert with_module + of_module == without
    assert of_module > 0 and of_none == 0


@needs_module
def test_steps_without_a_plan_come_to_python(passed):
    training, budget, _ = trained(models.tiny_gpt, 2)  # reactive, then recorded
    assert passed() == 0
    one_step(training, 2, STYLE, budget.step)
    assert passed() > 0
    budget.close()


@needs_module
def test_a_step_outside_the_budget_is_not_watched(passed):
    training, budget, _ = trained(models.tiny_gpt, 3)
    budget.close()
    before = passed()
    one_step(training, 4, STYLE)
    assert passed() == before > 0


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


@needs_module
@pytest.mark.parametrize("outside", (True, False))
def test_a_mode_of_the_users_around_or_in_a_step_sees_all_calls(outside, passed):
    seen = []
    for module_there in (True, False):
        with contextlib.nullcontext() if module_there else without_module():
            training, budget, _ = trained(models.tiny_gpt, 3)
        before = passed()
        mode = Seen()
        with contextlib.ExitStack() as both:
            for part in (mode, budget.step()) if outside else (budget.step(), mode):
                both.enter_context(part)
            body(training, [training.batch(40)], STYLE)
        assert budget.divergences == 0 and passed() == before
        seen.append(mode.calls)
        budget.close()
    assert seen[0] == seen[1] > 0


# ---- steps that are not as planned

@needs_module
@pytest.mark.parametrize("name", models.TINY)
def test_a_step_that_leaves_the_plan_in_the_middle_goes_on_without(name, passed):
    build = models.TINY[name]
    places = range(2, hooks_of_a_step(build), 5)
    diverged = 0

    def other_step(training, place, step):
        left = [place]

        def work():
            left[0] -= 1
            if left[0] == 0:
                with torch.no_grad():
                    for p in training.model.parameters():
                        p.mul_(0.999)

        batch = training.batch(30)
        with hooked(training.model, work), step():
            return body(training, [batch], STYLE)

    for place in places:
        runs = []
        for inside_a_budget in (False, True):
            training = models.make(build)
            torch.manual_seed(5)
            budget = fit(training) if inside_a_budget else None
            step = budget.step if budget else contextlib.nullcontext
            losses = [one_step(training, n, STYLE, step) for n in range(3)]
            losses.append(_value_or_error(lambda: other_step(training, place, step)))
            losses.append(one_step(training, 4, STYLE, step))
            if budget:
                diverged += budget.divergences
                budget.close()
            runs.append(Ran(losses, state_of(training)))
        assert differences(*runs) == [], place
    assert diverged > 0 and passed() > 0


def _value_or_error(work):
    """In the backward pass a weight that was changed is an error, with the budget as without."""
    try:
        return work()
    except RuntimeError as error:
        return str(error).split(":", maxsplit=1)[0]


@needs_module
def test_a_call_on_what_the_plan_moves_or_reads_again_comes_to_python(passed):
    """The op is the one that the plan expects, on another tensor."""
    small, large, later = torch.zeros(4), torch.zeros(4), torch.zeros(4)
    add = torch.ops.aten.add_.Tensor
    walk = Walk([(add, native.LEFT_ALONE)] * 5, {large.untyped_storage()._cdata},
                {later.untyped_storage()._cdata})
    mode = native.step_mode(InterruptGate())
    arrived = []

    def handle(func, args, kwargs):
        arrived.append(args[0])
        walk.position += 1
        return func(*args, **kwargs)

    mode.handle = handle
    mode.walk = walk
    with mode:
        small.add_(later)
        large.add_(1)
        small.add_(large)
        later.add_(small)
        small.add_(1)
    assert walk.position == 5 and passed() == 2
    assert [id(t) for t in arrived] == [id(large), id(small), id(later)]
    assert small.tolist() == [2.0] * 4 and later.tolist() == [1.0] * 4


@needs_module
def test_behind_results_that_are_too_large_every_call_comes_to_python(passed):
    mul = torch.ops.aten.mul.Tensor
    walk = Walk([(mul, native.LEFT_ALONE)] * 5, set(), set(), made=[4000] * 5)
    walk.growth.room = 1000
    walk.growth.begin()
    mode = native.step_mode(InterruptGate())
    arrived = []

    def handle(func, args, kwargs):
        arrived.append(args[0].numel())
        walk.position += 1
        return func(*args, **kwargs)

    mode.handle = handle
    mode.walk = walk
    tensors = [torch.ones(size) for size in (1000, 500, 1200, 1100, 10)]
    with mode:
        for tensor in tensors:
            tensor.mul(2)
    assert passed() == 4 and arrived == [10] and walk.growth.spare == 1000 - 800 - 400


class Walk:
    """In an executor's place."""

    def __init__(self, expected, ours, read_later, made=None):
        self.calls = [*expected, (None, None)]
        self.passing = [NOT_PASSING] * len(self.calls)
        self.position = 0
        self.python_looks_at = ()
        self.growth = Growth([None] * len(expected) if made is None else made, 64)
        self.ours = ours
        self.read_later = read_later


@needs_module
def test_steps_of_changing_shapes(passed):
    def run(inside_a_budget):
        training = models.make(models.tiny_resnet)
        torch.manual_seed(5)
        budget = fit(training) if inside_a_budget else None
        step = budget.step if budget else contextlib.nullcontext
        losses = []
        for n in range(12):
            x, y = training.batch(n)
            count = (4, 3)[n % 2]
            with step():
                losses.append(body(training, [(x[:count], y[:count])], STYLE))
        how = None
        if budget:
            how = budget.divergences, [p.steps for p in budget._plans]
            budget.close()
        return Ran(losses, state_of(training)), how

    expected, _ = run(False)
    found, how = run(True)
    assert differences(expected, found) == []
    of_module = passed()
    with without_module():
        assert run(True)[1] == how
    assert sum(how[1]) > 3 and passed() == of_module > 0


@needs_module
def test_verify(passed):
    training, budget, _ = trained(models.odd, 3)
    batch = training.batch(70)
    before = passed()
    verdict = budget.verify(lambda: body(training, [batch], STYLE), steps=3)
    assert verdict and verdict.planned_steps == 3
    assert passed() > before
    budget.close()
