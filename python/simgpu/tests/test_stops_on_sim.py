"""Steps on "sim" that end early, differ from the recorded one, or meet an error: nothing is lost."""

import contextlib
import itertools
import os
import zlib

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import simgpu
import tidepool_torch as tidepool
from sim_training import PLANNING, SIM, Case, Ran, differences, inside, machine, plain, state_of, values
from test_stops import StopAt  # of the package's own tests

POLICIES = ("eager", "lazy", "last", "random")
PLANNED = 3  # a step that is


def fit(model, optimizer, peak, **options):
    return tidepool.fit(model, optimizer, peak=peak, report=False,
                        **{**PLANNING, "machine": machine(), **options})


class Stopped(Exception):
    pass


def run(case, budget_of, in_step):
    """Plans, then runs in_step(number, step) for one step more; values of losses, gradients, state."""
    model, optimizer = case.make()
    budget = budget_of(model, optimizer)
    begin = budget.step if budget else contextlib.nullcontext
    for number in range(PLANNED):
        with begin():
            case.step(model, optimizer, case.batches(number), number)
    if budget:
        assert budget.report().planned_steps > 0
    batches = case.batches(PLANNED)
    gone_on = in_step(begin, lambda: case.step(model, optimizer, batches, PLANNED))
    if budget:
        budget.close()
    gradients = {f"gradient {n}": p.grad.detach().cpu() for n, p in model.named_parameters()
                 if p.grad is not None}
    return Ran(values(gone_on or []), {**state_of(model, optimizer), **gradients})


def compare(case, share, policy, in_step, **options):
    expected = plain(case)
    simgpu.policy("eager")
    reference = run(case, lambda *_: None, in_step)
    simgpu.policy(policy, 3)
    simgpu.raise_races(True)
    there = run(case, lambda m, o: fit(m, o, int(expected.peak * share), **options), in_step)
    simgpu.raise_races(False)
    assert differences(reference, there) == []
    assert simgpu.races() == []


def stopped_at_each(case, budget_of):
    """Trains with one step ended by an exception at an op, then a whole one, for op after op. Returns
    {(op, which): a sum of all that is trained} and the Report."""
    model, optimizer = case.make()
    budget = budget_of(model, optimizer)
    begin = budget.step if budget else contextlib.nullcontext
    found = {}

    def step(number=PLANNED):
        case.step(model, optimizer, case.batches(number), number)

    def note(op, which):
        with budget.resident() if budget else contextlib.nullcontext():
            gradients = [p.grad for p in model.parameters() if p.grad is not None]
            found[op, which] = zlib.crc32(b"".join(
                t.cpu().numpy().tobytes() for t in [*state_of(model, optimizer).values(), *gradients]))

    for number in range(PLANNED):
        with begin():
            step(number)
    for op in itertools.count(0, 1 if "TIDEPOOL_ATTACKS" in os.environ else 41):
        is_whole = True
        try:
            with begin(), StopAt(op, Stopped):
                step()
        except Stopped:
            is_whole = False
        note(op, "stopped")
        optimizer.zero_grad()
        with begin():
            step()
        note(op, "next")
        if is_whole:
            break
    report = budget.report() if budget else None
    if budget:
        budget.close()
    return found, report


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case, share, link", [
    (Case(), 0.6, 2e9), (Case(optimizer="sgd", rows=16), 0.5, 1e8)], ids=["copies", "reruns"])
def test_an_exception_at_any_op_leaves_what_plain_training_has(case, share, link, policy):
    """At each one with TIDEPOOL_ATTACKS, else at some."""
    peak = int(plain(case).peak * share)
    simgpu.policy("eager")
    expected, _ = stopped_at_each(case, lambda *_: None)
    simgpu.policy(policy, 3)
    simgpu.raise_races(True)
    there, report = stopped_at_each(case, lambda m, o: fit(m, o, peak, machine=machine(link)))
    simgpu.raise_races(False)
    assert len(expected) > 20
    assert [at for at in expected if expected[at] != there.get(at)] == []
    assert simgpu.races() == []
    assert report.planned_steps >= len(expected) // 2
    assert report.moved_out if link == 2e9 else report.reruns


@pytest.mark.parametrize("policy", POLICIES)
def test_an_exception_of_a_hook_in_the_engines_thread(policy):
    def hook(number, model):
        if number == PLANNED:
            def stop(_):
                raise Stopped()
            parameter = next(p for n, p in model.named_parameters() if n.endswith("up.weight"))
            parameter.register_hook(stop)

    def in_step(begin, step):
        with pytest.raises(Stopped), begin():
            step()

    compare(Case(model="llama", before_backward=hook, steps=PLANNED), 0.6, policy, in_step)


@pytest.mark.parametrize("policy", POLICIES)
def test_ctrl_c_in_a_step(policy):
    def in_step(begin, step):
        with pytest.raises(KeyboardInterrupt), begin(), StopAt(40, KeyboardInterrupt):
            step()

    compare(Case(), 0.6, policy, in_step)


@pytest.mark.parametrize("kind", ["copy to host", "copy to device"])
def test_a_copy_that_fails_is_said_where_the_host_waits(kind):
    """As CUDA's errors, which come late."""
    case = Case()
    peak = int(plain(case).peak * 0.6)
    model, optimizer = case.make()
    budget = fit(model, optimizer, peak)
    for number in range(PLANNED):
        with budget.step():
            case.step(model, optimizer, case.batches(number))
    batches = case.batches(PLANNED)
    simgpu.fail_task(kind, 5)
    with pytest.raises(RuntimeError, match=f"{kind}: a test asked for it"):
        with budget.step():
            case.step(model, optimizer, batches)
        budget.close()
    simgpu.synchronize()
    budget.close()


def test_a_full_host_tier_is_said_and_training_goes_on_plainly():
    case = Case()
    peak = int(plain(case).peak * 0.6)
    model, optimizer = case.make()
    budget = fit(model, optimizer, peak, host=50_000)
    with pytest.raises((tidepool.HostTierFull, tidepool.BudgetInfeasible), match="host="):
        for number in range(PLANNED):
            with budget.step():
                case.step(model, optimizer, case.batches(number))
    budget.close()
    assert all(torch.isfinite(p).all().item() for p in model.parameters())


@pytest.mark.parametrize("policy", POLICIES)
def test_batches_of_another_size(policy):
    sizes = [8, 8, 8, 8, 5, 8, 8, 5]

    def train(budget_of):
        case = Case()
        model, optimizer = case.make()
        budget = budget_of(model, optimizer)
        losses = []
        for number, rows in enumerate(sizes):
            case.rows = rows
            batches = case.batches(number)
            with budget.step() if budget else contextlib.nullcontext():
                losses += case.step(model, optimizer, batches)
        planned = budget.report().planned_steps if budget else 0
        if budget:
            budget.close()
        return Ran(values(losses), state_of(model, optimizer)), planned

    peak = int(plain(Case()).peak * 0.6)
    simgpu.policy("eager")
    expected, _ = train(lambda *_: None)
    simgpu.policy(policy, 4)
    simgpu.raise_races(True)
    there, planned = train(lambda m, o: fit(m, o, peak))
    assert differences(expected, there) == []
    assert planned >= 4


@pytest.mark.parametrize("policy", POLICIES)
def test_evaluation_and_state_dict_between_steps(policy):
    case = Case()
    expected, seen = [], []

    def look(into, model, optimizer):
        model.eval()
        with torch.no_grad():
            into.append(model(case.batches(99)[0][0]).cpu())
        model.train()
        into += [v.cpu() for v in model.state_dict().values()]
        into += [v.cpu() for state in optimizer.state_dict()["state"].values() for v in state.values()]

    simgpu.policy("eager")
    model, optimizer = case.make()
    for number in range(case.steps):
        look(expected, model, optimizer)
        case.step(model, optimizer, case.batches(number), number)

    ran = inside(case, 0.6, policy,
                 before_step=lambda _, budget: look(seen, budget._model, *budget._trained.optimizers))
    assert differences(plain(case), ran) == []
    assert ran.planned_steps > 0
    assert len(seen) == len(expected) > 100
    assert all(torch.equal(a, b) for a, b in zip(expected, seen))


@pytest.mark.parametrize("policy", POLICIES)
def test_state_dict_inside_a_step_is_of_now(policy):
    """What it hands out of tensors that are away then."""

    def watched(into, optimizer_of):
        def look(_, model):
            state = optimizer_of().state_dict()["state"]
            into.extend(v.cpu() for v in model.state_dict().values())
            into.extend(v.cpu() for of in state.values() for v in of.values())
        return look

    optimizers, expected, seen = [], [], []
    simgpu.policy("eager")
    case = Case(before_backward=watched(expected, lambda: optimizers[0]))
    model, optimizer = case.make()
    optimizers.append(optimizer)
    for number in range(case.steps):
        case.step(model, optimizer, case.batches(number), number)

    plain(Case())
    case = Case(before_backward=watched(seen, lambda: optimizers[-1]))
    simgpu.policy(policy, 3)
    simgpu.raise_races(True)
    model, optimizer = case.make()
    optimizers.append(optimizer)
    with contextlib.closing(fit(model, optimizer, int(plain(Case()).peak * 0.6))) as budget:
        for number in range(case.steps):
            with budget.step():
                case.step(model, optimizer, case.batches(number), number)
    simgpu.raise_races(False)
    assert len(seen) == len(expected) > 100
    assert all(torch.equal(a, b) for a, b in zip(expected, seen))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_tensor_that_is_away_says_so(policy):
    case = Case()
    said = []

    def before_step(number, budget):
        for planned in budget._plans if number == PLANNED else ():
            blocks = planned.executor.blocks
            away = [t for t, p in blocks.points_at.items() if p is None]
            for state in budget._trained.optimizers[0].state.values():
                with contextlib.suppress(RuntimeError):
                    try:
                        state["exp_avg"] + 1
                    except RuntimeError as error:
                        said.append(str(error))
                        raise
            assert away

    ran = inside(case, 0.6, policy, before_step=before_step)
    assert said
    assert all("exp_avg is not on the device" in text and "budget.resident()" in text for text in said)
    assert differences(plain(case), ran) == []


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", [
    Case(micro_batches=2), Case(micro_batches=3, autocast=True), Case(autocast=True, optimizer="foreach"),
    Case(call=lambda model, x: checkpoint(model, x, use_reentrant=False)),
    Case(model="resnet", call=lambda model, x: checkpoint(model, x.requires_grad_(), use_reentrant=True))],
    ids=["accumulation", "accumulation in bf16", "bf16", "checkpoint", "reentrant checkpoint"])
def test_ways_to_write_a_step(case, policy):
    ran = inside(case, 0.6, policy)
    assert differences(plain(case), ran) == []
    assert simgpu.races() == []
    assert ran.planned_steps > 0
    assert ran.moved + ran.reruns > 0
    assert ran.divergences == 0


def test_verify_compares_on_the_device():
    case = Case()
    model, optimizer = case.make()
    with contextlib.closing(fit(model, optimizer, int(plain(case).peak * 0.6))) as budget:
        batches = case.batches(1)
        for _ in range(PLANNED):
            with budget.step():
                case.step(model, optimizer, batches)
        verdict = budget.verify(lambda: case.step(model, optimizer, batches))
        assert verdict
        assert verdict.planned_steps == 3, str(verdict)
        with budget.resident():
            assert all(p.device == SIM for p in model.parameters())


@pytest.mark.parametrize("policy", POLICIES)
def test_a_step_under_a_stream_of_the_users(policy):
    """All of it: the stream of the ops is that."""
    stream = torch.Stream(device=SIM)

    @contextlib.contextmanager
    def step(budget):
        here = torch.accelerator.current_stream(SIM)
        stream.wait_stream(here)
        with stream, budget.step():
            yield
        here.wait_stream(stream)

    ran = inside(Case(), 0.6, policy, step=step)
    assert differences(plain(Case()), ran) == []
    assert ran.planned_steps > 0
    assert simgpu.races() == []


@pytest.mark.parametrize("when", [0, 1, PLANNED])
def test_an_op_on_another_stream_is_refused(when):
    side = torch.Stream(device=SIM)
    count = iter(range(99))

    def call(model, x):
        out = model(x)
        if next(count) == when:
            here = torch.accelerator.current_stream(SIM)
            side.wait_stream(here)
            with side:
                out.mul(2)
            here.wait_stream(side)
        return out

    plain(Case())
    model, optimizer = Case().make()
    case = Case(call=call)
    budget = fit(model, optimizer, int(plain(Case()).peak * 0.6))
    with pytest.raises(tidepool.TidepoolError, match="another stream than the one that was current"):
        for number in range(PLANNED + 1):
            with budget.step():
                case.step(model, optimizer, case.batches(number), number)
    budget.close()


@pytest.mark.parametrize("policy", ["lazy", "random"])
def test_state_dict_in_a_hook_and_a_pass_under_inference_mode(policy):
    """The hook runs in the engine's thread, whose step it would wait for; memory that is pinned first under
    inference_mode() serves outside of it."""
    seen = []

    def before_backward(number, model):
        with torch.inference_mode():
            model(case.batches(90 + number)[0][0])
        parameter = next(iter(model.parameters()))
        handle = parameter.register_hook(lambda _: seen.append(model.state_dict()["head.weight"].cpu()))
        handles.append(handle)
        for old in handles[:-1]:
            old.remove()

    handles = []
    case = Case(before_backward=before_backward)
    expected = plain(case)
    plainly = list(seen)
    seen.clear()
    ran = inside(case, 0.6, policy)
    assert differences(expected, ran) == []
    assert len(seen) == len(plainly) > 0
    assert all(torch.equal(a, b) for a, b in zip(plainly, seen))
