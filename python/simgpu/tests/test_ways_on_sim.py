"""What users of a GPU do beside plain steps, on "sim"."""

import contextlib
import itertools
import subprocess
import sys

import pytest
import torch

import simgpu
import tidepool_torch as tidepool
from processes import in_process_of_its_own
from sim_training import PLANNING, SIM, Case, Ran, differences, inside, machine, plain, state_of, values
from tidepool_torch.base import device
from tidepool_torch.running import native

POLICIES = ("eager", "lazy", "last", "random")


def budget_of(case, share, **options):
    """(model, optimizer, Budget)"""
    peak = int(plain(case).peak * share)
    model, optimizer = case.make()
    return model, optimizer, tidepool.fit(model, optimizer, peak=peak, report=False,
                                          **{"machine": machine(), **PLANNING, **options})


@pytest.mark.parametrize("policy", POLICIES)
def test_a_scaler_that_skips_an_update(policy):
    """Gradients that are not finite end a step early: it is none that differs."""
    case = Case(clip=False)

    def train(budget, model, optimizer):
        scaler = torch.amp.GradScaler("sim", init_scale=2.0 ** 8)
        losses = []
        for number in range(9):
            (x, y), = case.batches(number)
            with budget.step() if budget else contextlib.nullcontext():
                out = model(x)
                loss = torch.nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y)
                # The batch decides, not a branch of the script's.
                poison = torch.full((), float("inf") if number in (4, 6) else 1.0).to(SIM)
                scaler.scale(loss * poison).backward()
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                losses.append(loss.detach())
        report = budget.report() if budget else None
        if budget:
            budget.close()
        return Ran(values(losses), state_of(model, optimizer)), scaler.get_scale(), report

    simgpu.policy("eager")
    expected, scale, _ = train(None, *case.make())
    simgpu.policy(policy, 2)
    simgpu.raise_races(True)
    model, optimizer, budget = budget_of(case, 0.6)
    there, its_scale, report = train(budget, model, optimizer)
    assert differences(expected, there) == []
    assert its_scale == scale
    assert scale < 2.0 ** 8  # two were skipped
    assert budget.divergences == 0
    assert report.planned_steps >= 4


def test_verify_says_what_plain_training_does_not_repeat():
    """An op that gives other bits each time, as kernels with atomics do."""
    count = itertools.count()
    case = Case(call=lambda model, x: model(x) * (1 + 1e-5 * (next(count) % 7)))
    model, optimizer, budget = budget_of(Case(), 0.6)
    with contextlib.closing(budget):
        batches = case.batches(1)
        for _ in range(3):
            with budget.step():
                case.step(model, optimizer, batches)
        verdict = budget.verify(lambda: case.step(model, optimizer, batches))
    assert verdict.unrepeated
    assert verdict.plain_difference > 0
    assert "plain training does not repeat its own bits" in str(verdict)
    assert "use_deterministic_algorithms" in str(verdict)


def test_ops_that_may_differ_when_they_run_again_do_not():
    case = Case("resnet", "sgd", rows=16, clip=False, call=lambda model, x: model(x).cumsum(1))

    def names(deterministic):
        found = set()

        def before_step(number, budget):
            for planned in budget._plans:
                found.update(op.name for op in planned.program.recording.ops if op.again)

        torch.use_deterministic_algorithms(deterministic)
        try:
            inside(case, 0.75, "eager", before_step=before_step)
        finally:
            torch.use_deterministic_algorithms(False)
        return found

    assert "cumsum" not in names(False)
    assert "cumsum" in names(True)


@pytest.mark.skipif(native.find()[0] is None, reason="the native module is not built")
@pytest.mark.parametrize("policy", ["eager", "random"])
def test_the_native_module_sees_ops_of_the_engines_thread(policy):
    case = Case("llama", steps=6)
    passed = []

    def before_step(number, budget):
        for planned in budget._plans:
            executor = planned.executor
            may = sum(action is None or not hasattr(action, "uses") for _, action in executor.calls[:-1])
            watched = budget._runner._mode.watched(executor).passed
            passed.append((watched, may * planned.steps))

    ran = inside(case, 0.75, policy, before_step=before_step)
    assert differences(plain(case), ran) == []
    seen, may = passed[-1]
    assert may > 0
    assert seen > 0.9 * may


@pytest.mark.parametrize("policy", ["lazy", "random"])
def test_a_file_for_what_leaves(policy, tmp_path):
    """The host waits for the file there."""
    case = Case()
    ran = inside(case, 0.6, policy, host_dir=str(tmp_path))
    assert differences(plain(case), ran) == []
    assert simgpu.races() == []
    assert ran.planned_steps > 0
    assert ran.moved > 0


def _ahead(policy):
    """Where no backward pass ran before: a copy of a process in which one did can run none."""
    case = Case()
    simgpu.policy(policy, 3)
    model, optimizer = case.make()
    batches = case.batches(0)
    peak = 1_300_000
    budget = tidepool.fit(model, optimizer, peak=peak, report=False,
                          step=lambda: case.step(model, optimizer, batches),
                          **{"machine": machine(), **PLANNING})
    with contextlib.closing(budget):
        is_planned = budget.plan is not None
        losses = []
        for number in range(case.steps):
            batches = case.batches(number)
            with budget.step():
                losses += case.step(model, optimizer, batches)
        planned = budget.report().planned_steps
    ran = Ran(values(losses), state_of(model, optimizer))
    assert peak < plain(case).peak
    return is_planned, planned, differences(plain(case), ran)


@pytest.mark.parametrize("policy", ["lazy", "random"])
def test_plans_ahead_of_time(policy):
    is_planned, planned, differ = in_process_of_its_own(_ahead, policy)
    assert is_planned
    assert planned >= 3
    assert differ == []


def test_a_copy_that_can_run_no_backward_pass_is_said(capfd):
    plain(Case())
    model, optimizer = Case().make()
    batches = Case().batches(0)
    tidepool.fit(model, optimizer, peak="1GiB", step=lambda: Case().step(model, optimizer, batches),
                 machine=machine()).close()
    assert "Next: fit() before the first backward pass" in capfd.readouterr().err


def test_models_on_two_devices_are_refused():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)).to(SIM)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model[1].register_buffer("elsewhere", torch.empty(4, device="meta"))
    with pytest.raises(tidepool.TidepoolError, match="is on meta"):
        tidepool.fit(model, optimizer, peak="1GiB")


def test_record_and_plan_are_of_the_device():
    case = Case()
    model, optimizer = case.make()
    batches = case.batches(0)
    program = tidepool.record(model, optimizer, lambda: case.step(model, optimizer, batches),
                              min_bytes=4096)
    assert all(t["bytes"] % 512 == 0 for t in program["tensors"])
    outlook = tidepool.plan(model, optimizer, lambda: case.step(model, optimizer, batches), peak="60%",
                            machine=machine(), run=True,
                            **{k: v for k, v in PLANNING.items()})
    assert outlook.feasible
    assert "processor" not in str(outlook)


def test_what_dlpack_exports_stays():
    case = Case()
    model, optimizer, budget = budget_of(case, 0.6)
    with contextlib.closing(budget):
        weight = next(iter(model.parameters()))
        device.at(SIM).note_export(weight.untyped_storage())
        for number in range(4):
            with budget.step():
                case.step(model, optimizer, case.batches(number))
        address = weight.data_ptr()
        with budget.step():
            case.step(model, optimizer, case.batches(4))
        assert weight.data_ptr() == address


SCRIPT = """
import torch
import simgpu.served
from torch.nn import functional as F

torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(6))).to("sim")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(5):
    F.mse_loss(model(torch.ones(64, 128).to("sim")), torch.zeros(64, 128).to("sim")).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize("options, said", [
    ([], "3 of them planned"), (["--verify", "4"], "equal to the last bit behind each of 4 steps")])
def test_run_of_an_unchanged_script(options, said, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "tidepool_torch", "run", "--peak", "1700KiB", "--evaluations", "50", "--min-bytes",
         "4096", *options, "--", str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout + done.stderr, done.stderr
