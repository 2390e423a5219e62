"""Steps that take more than the recorded one though their first call is the same."""

import contextlib
import gc
import re

import torch
from torch import nn
from torch.nn import functional as F

import models
import tidepool_torch as tidepool
from tidepool_torch.planning.planner import smallest_budget
from tidepool_torch.planning.planning import machine_of
from tidepool_torch.recording.program import StepProgram
from training import Ran, Style, differences, one_step, state_of

ROWS = 1024


class Masked(nn.Module):
    """Few of the rows go through the head: how many is known from values only."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*[nn.Sequential(nn.Linear(128, 256), nn.GELU(),
                                                  nn.Linear(256, 128)) for _ in range(4)])
        self.head = nn.Linear(128, 1000)

    def forward(self, x, mask):
        return self.head(self.body(x)[mask])


def masked():
    model = Masked()
    return models.Training(model, torch.optim.AdamW(model.parameters()), None, None)


def train(chosen, peak, between=lambda number: None):
    """Steps with so many chosen rows each: what came of it, and the report; peak None: plainly."""
    gc.collect()  # else it goes later, and counts as room
    training = models.make(masked)
    torch.manual_seed(5)
    budget = None
    if peak is not None:
        budget = tidepool.fit(training.model, training.optimizer, peak=peak, evaluations=30)
    losses, kept = [], []
    for number, count in enumerate(chosen):
        x, y = torch.randn(ROWS, 128), torch.randint(1000, (ROWS,))
        mask = torch.arange(ROWS) < count
        kept.append(between(number))
        with budget.step() if budget else contextlib.nullcontext():
            loss = F.cross_entropy(training.model(x, mask), y[mask])
            loss.backward()
            training.optimizer.step()
            training.optimizer.zero_grad()
        losses.append(loss.item())
    report = budget.report() if budget else None
    if budget:
        budget.close()
    return Ran(losses, state_of(training)), report


def checked(chosen, peak, between=lambda number: None):
    ran, report = train(chosen, peak, between)
    assert differences(train(chosen, None)[0], ran) == []
    return report


def test_a_step_whose_results_outgrow_the_recorded_ones_goes_on_reactively(capfd):
    report = checked([50] * 4 + [900] * 6, "60%")
    assert report.divergences == report.outgrown == 3
    assert ", 3 of them by what they took" in str(report)
    said = capfd.readouterr().err
    assert "more than the recorded ones, the budget has" in said
    assert "step 6 needed" in said  # a thing that this budget has no room for


def test_results_may_be_larger_where_the_budget_has_room():
    report = checked([60] * 4 + [61, 59, 65, 60], "97%")
    assert report.divergences == 0 and report.planned_steps == 6


def test_what_a_script_keeps_more_is_seen_where_the_plan_has_most(capfd):
    kept = 3 << 20
    report = checked([50] * 9, "75%",
                     lambda number: torch.ones(kept // 4) if number == 4 else None)
    assert report.outgrown == 1 and report.planned_steps == 9 - 2 - 1 - 1
    assert "would be live here; the script's largest tensors: 3.0 MiB [786432]" in (
        capfd.readouterr().err)


def test_what_a_script_keeps_of_a_step_is_planned_around(capfd):
    """Features that a hook keeps from the fifth step on, until the next one."""
    def run(inside):
        gc.collect()
        training = models.make(masked)
        torch.manual_seed(5)
        budget = tidepool.fit(training.model, training.optimizer, peak="75%",
                              evaluations=30) if inside else None
        features, losses, live = [], [], []
        for number in range(9):
            if number == 4:
                for block in training.model.body:
                    block.register_forward_hook(
                        lambda module, args, out: features.append(out.detach()))
            x = torch.randn(ROWS, 128)
            with budget.step() if inside else contextlib.nullcontext():
                features.clear()
                loss = training.model(x, slice(None, 50)).square().mean()
                loss.backward()
                training.optimizer.step()
                training.optimizer.zero_grad()
            losses.append(loss.item())
        if inside:
            report, program = budget.report(), budget._plans[0].program
            assert report.planned_steps == 9 - 2 - 1 and report.plans_let_go == 1
            assert program.recording.left_behind() >= 2 << 20 and program.recording.held == 0
            budget.close()
        return Ran(losses, state_of(training))

    assert differences(run(False), run(True)) == []
    assert re.search(r"step 5 ends with [12]\.\d MiB more than its plan knows of; the script's largest "
                     r"tensors: 512\.0 KiB \[1024, 128\]", capfd.readouterr().err)


def test_a_batch_made_in_the_step_has_a_plan_for_each_size():
    def run(inside):
        gc.collect()
        training = models.make(masked)
        torch.manual_seed(5)
        budget = tidepool.fit(training.model, training.optimizer, peak="11MiB", evaluations=30,
                              report=False) if inside else None
        losses, keys = [], set()
        for rows in [512] * 4 + [1024] * 4:
            with budget.step() if inside else contextlib.nullcontext():
                x = torch.randn([rows, 128])
                loss = training.model(x, slice(None, 50)).square().mean()
                loss.backward()
                training.optimizer.step()
                training.optimizer.zero_grad()
            losses.append(loss.item())
            if inside:
                keys |= {p.key for p in budget._plans}
        report = budget.report() if inside else None
        if inside:
            budget.close()
        return Ran(losses, state_of(training)), report, keys

    ran, report, keys = run(True)
    assert differences(run(False)[0], ran) == []
    assert report.divergences == 0 and len(keys) == 2


def test_scratch_of_an_op_on_small_tensors_is_in_the_program():
    training = models.make(models.tiny_gpt)
    with tidepool.fit(training.model, training.optimizer, peak="60%", evaluations=30, min_bytes=4096,
                      report=False) as budget:
        for number in range(2):
            one_step(training, number, Style(), budget.step)
        program = budget._plans[0].program
    op = next(op for op in program.recording.ops if not set(op.modes) & set(program.tensor_of))
    op.workspace = 32 << 20
    again = StepProgram(program.recording, "step", 4096, 1.0, True, True)
    assert smallest_budget(again.json, machine_of(2e9, 2e9))[0] >= 32 << 20


def test_what_numpy_looks_at_in_late_steps_is_in_the_budget(capfd):
    """It does not leave, as the plan has it: the rest of the step makes room."""
    def run(inside):
        gc.collect()
        training = models.make(masked)
        torch.manual_seed(5)
        late, sums, losses = [False], [], []
        training.model.body[0][1].register_forward_hook(
            lambda module, args, out: sums.append(out.detach().numpy().sum()) if late[0] else None)
        budget = tidepool.fit(training.model, training.optimizer, peak="60%",
                              evaluations=30) if inside else None
        for number in range(8):
            late[0] = number == 5
            x = torch.randn(ROWS, 128)
            with budget.step() if budget else contextlib.nullcontext():
                loss = training.model(x, torch.ones(ROWS, dtype=torch.bool)).pow(2).mean()
                loss.backward()
                training.optimizer.step()
                training.optimizer.zero_grad()
            losses.append(loss.item())
        report = budget.report() if budget else None
        if budget:
            budget.close()
        return Ran([*losses, *map(float, sums)], state_of(training)), report

    plainly, _ = run(False)
    ran, report = run(True)
    assert differences(plainly, ran) == []
    assert report.outgrown == 1 and report.planned_steps == 5
    assert "1.0 MiB stay since numpy or dlpack looks at them" in capfd.readouterr().err


def test_what_pytorch_lets_go_of_late_is_gone_before_the_next_op():
    """Also where that op is on nothing that the plan moves."""
    torch.manual_seed(0)
    model = nn.ModuleList([nn.Linear(256, 256) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    gone = []

    def step():
        h, mask = torch.randn(ROWS, 256), torch.full((256,), 1.0)
        for linear in model:
            h = linear(h) + F.gelu(h * mask)
        h.pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    with tidepool.fit(model, optimizer, peak="60%", allow=("swap",), report=False,
                      machine=machine_of(4e9, 4e9)) as budget:
        for _ in range(3):
            with budget.step():
                step()
        with budget.step():
            executor = budget._plans[0].executor
            run = executor.run

            def seen(func, args, kwargs):
                late = executor._unfinished
                out = run(func, args, kwargs)
                if late is not None and executor.position - 1 in executor.schedule.lets_go:
                    gone.append(executor._unfinished != late)
                return out

            executor.run = seen
            step()
    assert len(gone) > 3 and all(gone)
