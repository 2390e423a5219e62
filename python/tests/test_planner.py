"""Plans by the library and by the program tidepool are the same; what neither can do is said."""

import os
import subprocess
import sys

import pytest

import models
import tidepool_torch as tidepool
import training
from tidepool_torch.planning import planner
from tidepool_torch.base.errors import BudgetInfeasible, TidepoolError

needs_program = pytest.mark.skipif(
    planner.program_path() is None or not os.access(planner.program_path() or "", os.X_OK),
    reason="no program tidepool: TIDEPOOL_PROGRAM names none, and none is on PATH")


@pytest.fixture(scope="module")
def recorded():
    """(program, machine, budget) that fit() plans for, of one recorded step."""
    asked = []
    make = planner.plan

    def note(program, machine, limit, host=None, options=planner.Options()):
        asked.append((program, machine, limit))
        return make(program, machine, limit, host, options)

    planner.plan = note
    try:
        training.inside(models.tiny_gpt, 3, "60%", evaluations=20, min_bytes=4096)
    finally:
        planner.plan = make
    return asked[-1]


@pytest.fixture
def by_process(monkeypatch):
    monkeypatch.setenv("TIDEPOOL_PLANNER", "process")


OPTIONS = planner.Options(evaluations=40)


def _without_recomputation(program):
    return {**program, "ops": [{**op, "recomputable": False} for op in program["ops"]]}


@needs_program
@pytest.mark.parametrize("name", ["auto", "autoswap", "home", "capuchin"])
def test_library_and_program_write_the_same_plan(recorded, monkeypatch, name):
    options = planner.Options(planner=name, evaluations=40, seed=3)
    inside = planner.plan(*recorded, options=options)
    monkeypatch.setenv("TIDEPOOL_PLANNER", "process")
    outside = planner.plan(*recorded, options=options)
    assert inside.text() == outside.text()
    assert inside.info.swapped_tensors + inside.info.recomputed_ops > 0
    assert [vars_of(i) for i in inside.instructions] == [vars_of(i) for i in outside.instructions]
    assert inside.lives == outside.lives


def vars_of(instruction):
    return tuple(getattr(instruction, name) for name in instruction.__slots__)


@needs_program
def test_swap_only_is_the_same_too(recorded, monkeypatch):
    program, machine, budget = recorded
    options = planner.Options(evaluations=40, recompute=False)
    program = _without_recomputation(program)
    inside = planner.plan(program, machine, budget, options=options)
    monkeypatch.setenv("TIDEPOOL_PLANNER", "process")
    outside = planner.plan(program, machine, budget, options=options)
    assert inside.text() == outside.text()
    assert inside.info.recomputed_ops == 0 and inside.info.swapped_tensors > 0


@needs_program
def test_host_budget_is_the_same_too(recorded, monkeypatch):
    unlimited = planner.plan(*recorded, options=OPTIONS)
    host = unlimited.host_bytes * 2
    inside = planner.plan(*recorded, host, OPTIONS)
    monkeypatch.setenv("TIDEPOOL_PLANNER", "process")
    outside = planner.plan(*recorded, host, OPTIONS)
    assert inside.text() == outside.text()


@needs_program
def test_both_name_the_smallest_budget(recorded, monkeypatch):
    program, machine, _ = recorded
    floor, _ = planner.smallest_budget(program, machine)
    with pytest.raises(BudgetInfeasible) as inside:
        planner.plan(program, machine, floor // 2, options=OPTIONS)
    monkeypatch.setenv("TIDEPOOL_PLANNER", "process")
    with pytest.raises(BudgetInfeasible) as outside:
        planner.plan(program, machine, floor // 2, options=OPTIONS)
    assert inside.value.smallest == outside.value.smallest >= floor


def test_process_refuses_what_the_program_has_no_option_for(recorded, by_process):
    with pytest.raises(TidepoolError, match="no option for plans that do not swap. Next: unset"):
        planner.plan(*recorded, options=planner.Options(swap=False))
    if any(op["recomputable"] for op in recorded[0]["ops"]) and planner.program_path():
        with pytest.raises(TidepoolError, match="ops are not recomputable. Next: unset"):
            planner.plan(*recorded, options=planner.Options(recompute=False))


def test_fit_refuses_it_before_training(by_process):
    made = models.make(models.tiny_gpt)
    with pytest.raises(TidepoolError, match="no option for plans that do not swap"):
        tidepool.fit(made.model, made.optimizer, peak="60%", allow=("recompute",))


def test_program_that_is_not_there(recorded, by_process, monkeypatch):
    monkeypatch.delenv("TIDEPOOL_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TidepoolError, match="no program tidepool on PATH. Next: set TIDEPOOL_PROGRAM"):
        planner.plan(*recorded, options=OPTIONS)


def test_program_that_fails_says_why(recorded, by_process, monkeypatch, tmp_path):
    broken = tmp_path / "tidepool"
    broken.write_text("#!/bin/sh\necho no luck >&2\nexit 9\n")
    broken.chmod(0o755)
    monkeypatch.setenv("TIDEPOOL_PROGRAM", str(broken))
    with pytest.raises(TidepoolError, match="ended with 9: no luck"):
        planner.plan(*recorded, options=OPTIONS)


@needs_program
def test_training_with_plans_of_the_program_is_exact(by_process):
    plain = training.plain(models.tiny_gpt, 4)
    ran = training.inside(models.tiny_gpt, 4, "60%", evaluations=20, min_bytes=4096)
    assert training.differences(plain, ran) == []
    assert ran.planned_steps > 0 and ran.moved_out + ran.reruns > 0


def test_library_that_is_not_there(tmp_path):
    code = ("import tidepool_torch.base.library as l\n"
            "try: l.library()\n"
            "except l.TidepoolError as e: print(e)\n")
    environment = {**os.environ, "TIDEPOOL_LIBRARY": str(tmp_path / "none.so"),
                   "PYTHONPATH": os.path.join(os.path.dirname(__file__), "..")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True,
                          text=True, check=True)
    assert "libtidepool.so.1 was not found" in done.stdout
    assert "Next: set TIDEPOOL_LIBRARY" in done.stdout
