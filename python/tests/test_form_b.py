"""Form B, which resizes storages: with torch before 2.12, or with TIDEPOOL_FORM=B."""

import contextlib
import copy
import gc
import os
import subprocess
import sys
import types

import pytest
import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.base import compat, device, primitives
from tidepool_torch.running import forms
from tidepool_torch.base import resizing
from tidepool_torch.base.memory import counts, hook_is_loaded
from tidepool_torch.planning.planner import Options
from tidepool_torch.planning.planning import machine_of
from test_stops import StopAt
from tidepool_torch.running.schedule import LEFT_ALONE
from training import Ran, Style, body, differences, inside, one_step, plain, state_of

only_here = pytest.mark.skipif(primitives.FORM != "B", reason="form B serves other torches")
OPTIONS = {"machine": machine_of(2e9, 2e9, alignment=64), "min_bytes": 1024, "evaluations": 50}


@pytest.mark.skipif(primitives.FORM == "B", reason="this process has form B already")
def test_form_b_serves_this_torch_too():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__,
         __file__.replace("form_b", "swap_executor")],
        env={**os.environ, "TIDEPOOL_FORM": "B"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout and "failed" not in done.stdout


# ---- bits and bytes

@only_here
@pytest.mark.parametrize("name, batch, peak", [("resnet", 16, 20.6), ("gpt", 2, 75.0)])
def test_large_models_give_the_same_bits_inside_the_budget(name, batch, peak):
    def build():
        return models.LARGE[name](batch=batch)

    ran = inside(build, 4, int(peak * (1 << 20)), hard=True, evaluations=100)
    assert differences(plain(build, 4), ran) == []
    assert ran.planned_steps == 2 and ran.divergences == 0 and ran.reruns == 0
    assert ran.moved_out > 0 and ran.moved_in > 0
    if hook_is_loaded():
        assert 0 < ran.peak <= ran.budget and ran.refused == 0


@only_here
@pytest.mark.parametrize("name, style", [
    ("resnet", Style()), ("resnet", Style(zero_first=True, to_none=False)),
    ("gpt", Style(micro_batches=2, clip=True)), ("odd", Style(zero_first=True)),
    ("generator", Style(batch_inside=True))])
def test_steps_in_a_budget_give_the_bits_of_steps_without(name, style):
    build = models.TINY[name]
    ran = inside(build, 5, "60%", style, **OPTIONS)
    assert differences(plain(build, 5, style), ran) == []
    assert ran.planned_steps == 3 and ran.divergences == 0
    assert ran.moved_out > 0 and ran.moved_in > 0


@only_here
@pytest.mark.parametrize("planner", ["random", "autoswap", "home", "tide"])
def test_plans_of_any_planner_give_the_same_bits(planner):
    expected = plain(models.odd, 4)
    moved = 0
    for seed, share in ((1, "50%"), (2, "70%")):
        ran = inside(models.odd, 4, share, planner=planner, seed=seed, **OPTIONS)
        assert differences(expected, ran) == [], (planner, seed)
        assert ran.divergences == 0
        moved += ran.moved_in
    assert moved > 0


@only_here
def test_steps_without_a_plan_stay_inside():
    def build():
        return models.resnet(batch=16)

    expected = plain(build, 2)
    gc.collect()
    training = models.make(build)
    torch.manual_seed(5)
    peak = 32 << 20
    base = counts.live() - sum(4 * p.numel() for p in training.model.parameters())
    budget = tidepool.fit(training.model, training.optimizer, peak=peak, report=False, warm_up=9)
    if hook_is_loaded():
        counts.restart()
    ran = Ran([one_step(training, n, Style(), budget.step) for n in range(2)], {})
    if hook_is_loaded():
        # What kernels keep for good after the first step is no tensor's.
        assert counts.peak() - base - budget.report().kept_by_kernels <= peak
    assert budget.plan is None and budget._away.moved_in > 0
    budget.close()
    ran.state = state_of(training)
    assert differences(expected, ran) == []


@only_here
def test_programs_forbid_what_this_form_cannot_run():
    training = models.make(models.tiny_resnet)
    program = tidepool.record(training.model, training.optimizer,
                              lambda: one_step(training, 0, Style()), min_bytes=1024)
    assert program["single_placements"] is True
    assert not any(op["recomputable"] for op in program["ops"])
    assert any(op["kind"] in ("view", "t", "_unsafe_view", "detach") for op in program["ops"])


# ---- what is touched where the plan has it away

def planned(build, peak="60%", **more):
    """A training behind its first planned step, and its budget."""
    training = models.make(build)
    torch.manual_seed(5)
    budget = tidepool.fit(training.model, training.optimizer, peak=peak, report=False,
                          **{**OPTIONS, **more})
    losses = [one_step(training, n, Style(), budget.step) for n in range(3)]
    assert budget.plan is not None
    return training, budget, losses


@contextlib.contextmanager
def looking(model, look):
    """Calls look(outputs of all modules so far) behind each module of the model."""
    seen = []

    def hook(module, _, out):
        seen.append(out)
        look(seen)

    hooks = [m.register_forward_hook(hook) for m in model.modules() if not list(m.children())]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def away_among(tensors):
    return [t for t in tensors if not primitives.has_bytes(primitives.storage_of(t))]


USES = {"op": lambda t: t.sum().item(), "view": lambda t: t.view(-1)[0].item(),
        "copy": lambda t: t.clone().sum().item()}


@only_here
@pytest.mark.parametrize("use", USES)
def test_what_is_away_comes_back_for_an_op_that_the_plan_does_not_have(use):
    """At 45 % activations leave within the forward pass."""
    found = []

    def look(seen):
        away = away_among(seen)
        if away and not found:
            found.append(USES[use](away[0]))

    training, budget, losses = planned(models.tiny_resnet, "45%")
    with looking(training.model, look):
        losses.append(one_step(training, 3, Style(), budget.step))
    losses.append(one_step(training, 4, Style(), budget.step))
    assert len(found) == 1 and budget.divergences == 1
    budget.close()
    assert differences(plain(models.tiny_resnet, 5), Ran(losses, state_of(training))) == []


@only_here
def test_the_op_that_the_plan_has_on_another_tensor_that_is_away():
    """The same function, so the name alone does not tell."""
    training, budget, losses = planned(models.tiny_resnet, "45%")
    executor = budget._plans[0].executor
    run, found = executor.run, []

    def swapped(func, args, kwargs):
        away = [executor._reference[t] for t in executor._reference
                if primitives.living(executor._reference[t]) is not None
                and not primitives.has_bytes(primitives.living(executor._reference[t]))]
        expected, action = executor.calls[executor.position]
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        if away and not found and action in (None, LEFT_ALONE) and tensors and expected is func:
            storage = primitives.living(away[0])
            with pytest.raises(Exception, match="another tensor"):
                run(func, (torch.empty(0).set_(storage, 0, (4,), (1,)), *args[1:]), kwargs)
            found.append(func)
        return run(func, args, kwargs)

    executor.run = swapped
    losses.append(one_step(training, 3, Style(), budget.step))
    assert found
    budget.close()
    assert differences(plain(models.tiny_resnet, 4), Ran(losses, state_of(training))) == []


@only_here
def test_what_numpy_looks_at_keeps_its_bytes():
    arrays = []

    def look(seen):
        if len(seen) == 3 or len(seen) == modules + 3:
            arrays.append((seen[-1].detach().numpy(), seen[-1].detach().clone()))

    training, budget, losses = planned(models.tiny_resnet, "45%")
    modules = sum(not list(m.children()) for m in training.model.modules())
    with looking(training.model, look):
        losses += [one_step(training, n, Style(), budget.step) for n in (3, 4)]
    for array, expected in arrays:
        assert array.tobytes() == expected.numpy().tobytes()
    assert len(arrays) == 2 and budget.divergences > 0
    budget.close()
    assert differences(plain(models.tiny_resnet, 5), Ran(losses, state_of(training))) == []


@only_here
@pytest.mark.parametrize("failing", [1, 3, 6])
def test_an_error_of_a_copy_leaves_what_plain_training_has(failing):
    training, budget, losses = planned(models.tiny_gpt)
    executor = budget._plans[0].executor
    read, left, at = executor.region.read, [failing], []

    def broken(*args):
        left[0] -= 1
        if left[0] == 0:
            at.append(executor.position)
            raise OSError(5, "a trial")
        return read(*args)

    batch = training.batch(30)
    executor.region.read = broken
    with pytest.raises(OSError, match="a trial"):
        with budget.step():
            body(training, [batch], Style())
    budget.close()

    expected = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    assert losses == [one_step(expected, n, Style()) for n in range(3)]
    batch = expected.batch(30)
    with pytest.raises(KeyboardInterrupt):
        with StopAt(at[0], KeyboardInterrupt):
            body(expected, [batch], Style())
    assert differences(Ran([], state_of(expected)), Ran([], state_of(training))) == []


# ---- between steps

@only_here
def test_what_is_away_between_steps_is_saved_and_loaded():
    training, budget, losses = planned(models.tiny_gpt, home=False)
    expected = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    assert losses == [one_step(expected, n, Style()) for n in range(3)]
    assert away_among(v for state in training.optimizer.state.values() for v in state.values())
    found, right = training.optimizer.state_dict(), expected.optimizer.state_dict()
    for i, state in right["state"].items():
        for key, value in state.items():
            assert torch.equal(found["state"][i][key], value)
    for name, value in expected.model.state_dict().items():
        assert torch.equal(training.model.state_dict()[name], value)
    training.optimizer.load_state_dict(copy.deepcopy(right))
    random_state = torch.get_rng_state()
    more = [one_step(training, n, Style(), budget.step) for n in range(3, 6)]
    torch.set_rng_state(random_state)
    assert more == [one_step(expected, n, Style()) for n in range(3, 6)]
    with budget.resident():
        assert state_of(training) == state_of(expected)
    budget.close()
    assert not {"state_dict", "load_state_dict"} & set(vars(training.optimizer))


@only_here
def test_gradients_that_the_budget_has_no_room_for_are_there_behind_a_step():
    """Torch before 2.0 sets them to zero, by itself, outside of the step."""
    training = models.make(models.tiny_gpt)
    budget = tidepool.fit(training.model, training.optimizer, peak=30_000, report=False,
                          **{**OPTIONS, "warm_up": 9})
    x, y = training.batch(1)
    with budget.step():
        loss = training.loss(training.model, x, y)
        loss.backward()
    assert budget._away.moved_out > 0
    training.optimizer.zero_grad(set_to_none=False)
    assert all(p.grad.abs().sum() == 0 for p in training.model.parameters())
    assert sum(p.abs().sum() for p in training.model.parameters()) > 0
    budget.close()


@only_here
def test_a_user_can_verify_and_read_a_report(tmp_path, capsys):
    training = models.make(models.tiny_resnet)
    torch.manual_seed(5)
    budget = tidepool.fit(training.model, training.optimizer, peak="60%", **OPTIONS)
    one_step(training, 0, Style(), budget.step)
    verdict = budget.verify(lambda: one_step(training, 1, Style()), steps=4)
    assert verdict and verdict.planned_steps == 2
    report = budget.report()
    assert report.moved_in > 0 and report.reruns == 0 and "planned" in str(report)
    budget.export(tmp_path / "plan.html")
    assert (tmp_path / "plan.html").stat().st_size > 0
    budget.close()
    assert capsys.readouterr().err.count("form B") == 1


# ---- what is refused

@only_here
def test_recomputation_alone_and_ranks_are_refused():
    training = models.make(models.tiny_gpt)
    with pytest.raises(tidepool.TidepoolError, match="copies only. Next: "):
        tidepool.fit(training.model, training.optimizer, peak="60%", allow=("recompute",))
    ranks = types.SimpleNamespace(together=True)
    assert "DistributedDataParallel" in forms.why_not(device.HOST, Options(), ranks)
    ranks.together = False
    assert forms.why_not(device.HOST, Options(), ranks) is None


@only_here
def test_a_gpu_is_refused():
    gpu = types.SimpleNamespace(has_streams=True, device="cuda:0")
    ranks = types.SimpleNamespace(together=False)
    assert "a tensor that is away would end the process" in forms.why_not(gpu, Options(), ranks)


@only_here
def test_a_budget_that_no_plan_meets_does_not_advise_to_compute_again():
    training = models.make(models.tiny_gpt)
    budget = tidepool.fit(training.model, training.optimizer, peak=30_000, report=False,
                          allow=("swap",), **OPTIONS)
    with pytest.raises(tidepool.BudgetInfeasible) as raised:
        for n in range(3):
            one_step(training, n, Style(), budget.step)
    assert "recompute" not in str(raised.value) and raised.value.smallest > 30_000


@only_here
def test_the_doctor_says_what_this_form_lacks():
    assert "form B" in tidepool.doctor()


# ---- storages

@only_here
def test_a_storage_that_others_look_at_is_known_and_never_moved():
    numpy = pytest.importorskip("numpy")
    of_numpy, shared, exported = torch.from_numpy(numpy.ones(8)), torch.ones(8), torch.ones(8)
    shared.share_memory_()
    array = exported.numpy()
    for tensor in (of_numpy, exported, shared, torch.ones(8), torch.ones(8)[2:]):
        storage = primitives.storage_of(tensor)
        if not storage.is_shared():
            assert compat.may_move(storage) == compat.asked_to_grow(storage)
        if not compat.may_move(storage):
            with pytest.raises(primitives.NotMovable):
                resizing.set_away(storage, "")
            assert tensor.sum() == 8
    assert array.tolist() == [1] * 8


@only_here
def test_a_storage_knows_its_size_while_it_is_away():
    tensor = torch.arange(1000.0)
    storage = primitives.storage_of(tensor)
    copy = storage.clone()
    resizing.set_away(storage, "")
    assert storage.nbytes() == 0 and resizing.nbytes(storage) == 4000
    assert not resizing.has_bytes(storage)

    def fails(pointer):
        raise OSError("a trial")

    with pytest.raises(OSError):
        resizing.bring_back(storage, 4000, fails)
    assert resizing.nbytes(storage) == 4000 and storage.nbytes() == 0
    resizing.bring_back(storage, 4000, lambda pointer: storage.copy_(copy))
    assert tensor.tolist() == list(range(1000)) and resizing.has_bytes(storage)
    empty = primitives.storage_of(torch.empty(0))
    assert resizing.nbytes(empty) == 0 and resizing.has_bytes(empty)
