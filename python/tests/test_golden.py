"""Recorded programs of two models against golden files: what a change of the recording changes.

After a change that is meant: python tests/test_golden.py   (in python/; PYTHONPATH=.)
"""

import gzip
import json
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.planning import planner
from tidepool_torch.planning.planning import machine_of

FOLDER = pathlib.Path(__file__).parent / "golden"
AGAIN = "Where it is meant: python tests/test_golden.py"
TIME = 100_000  # ns of each op: no two machines measure the same, and a plan needs one
MOST_NAMED = 12


def program_of(name):
    training = models.make(models.LARGE[name])
    batch = training.batch(0)

    def step():
        loss = training.loss(training.model, *batch)
        loss.backward()
        training.optimizer.step()
        training.optimizer.zero_grad()

    program = tidepool.record(training.model, training.optimizer, step)
    for op in program["ops"]:
        op["algorithms"] = [{**op["algorithms"][0], "time_ns": TIME, "workspace": 0}]
    return program


def path_of(name):
    return FOLDER / f"{name}.program.json.gz"


def golden(name):
    with gzip.open(path_of(name), "rt") as file:
        return json.load(file)


def write(name):
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps({"torch": torch.__version__, "program": program_of(name)},
                      separators=(",", ":"))
    with open(path_of(name), "wb") as file:
        file.write(gzip.compress(text.encode(), 9, mtime=0))


def differences(expected, found):
    """In words, tensor by tensor and op by op."""
    lines = []
    for what in ("tensors", "ops"):
        before, now = expected[what], found[what]
        if len(before) != len(now):
            lines.append(f"{len(now)} {what} instead of {len(before)}")
        for i, (one, other) in enumerate(zip(before, now)):
            lines += [f"{what[:-1]} {i} {other['name']}: {key} is {other.get(key)!r} instead of "
                      f"{one.get(key)!r}"
                      for key in sorted({*one, *other}) if one.get(key) != other.get(key)]
    rest = {k: v for k, v in expected.items() if k not in ("tensors", "ops")}
    lines += [f"{k}: {found.get(k)!r} instead of {v!r}" for k, v in rest.items()
              if found.get(k) != v]
    return lines


@pytest.mark.parametrize("name", models.LARGE)
def test_recorded_program_is_the_golden_one(name):
    expected = golden(name)
    if torch.__version__.split(".")[:2] != expected["torch"].split(".")[:2]:
        pytest.skip(f"the golden programs are of torch {expected['torch']}: other versions run "
                    "other ops")
    lines = differences(expected["program"], program_of(name))
    if len(lines) > MOST_NAMED:
        lines[MOST_NAMED:] = [f"and {len(lines) - MOST_NAMED} more"]
    assert not lines, "\n".join([f"{path_of(name).name}:", *lines, AGAIN])


def test_a_difference_is_named():
    expected = golden("resnet")["program"]
    changed = json.loads(json.dumps(expected))
    changed["tensors"][3]["bytes"] += 4096
    changed["ops"][7]["recomputable"] = not changed["ops"][7]["recomputable"]
    del changed["ops"][-1]
    lines = differences(expected, changed)
    assert len(lines) == 3
    assert lines[0].startswith(f"tensor 3 {expected['tensors'][3]['name']}: bytes is ")
    assert lines[1] == f"{len(expected['ops']) - 1} ops instead of {len(expected['ops'])}"
    assert lines[2].startswith(f"op 7 {expected['ops'][7]['name']}: recomputable is ")


@pytest.mark.parametrize("name", models.LARGE)
def test_golden_files_are_small(name):
    assert path_of(name).stat().st_size < 100_000


@pytest.mark.skipif(planner.program_path() is None, reason="no program tidepool: TIDEPOOL_PROGRAM "
                                                           "names none, and none is on PATH")
@pytest.mark.parametrize("command", ["info", "plan", "compare", "bound"])
@pytest.mark.parametrize("name", models.LARGE)
def test_the_program_tidepool_takes_them(tmp_path, name, command):
    program, machine = golden(name)["program"], machine_of(1e9, 1e9)
    files = [tmp_path / "program.json", tmp_path / "machine.json"]
    for file, value in zip(files, (program, machine)):
        file.write_text(json.dumps(value))
    floor = planner.smallest_budget(program, machine)[0]
    budget = max(floor, sum(t["bytes"] for t in program["tensors"]) // 5)
    call = [planner.program_path(), command, *OPTIONS[command](*files, budget)]
    done = subprocess.run([str(c) for c in call], capture_output=True, text=True, check=False,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    assert SAYS[command] in done.stdout


def _with_budget(*more):
    return lambda program, machine, budget: ["--program", program, "--machine", machine, "--budget",
                                             budget, *more]


OPTIONS = {"info": lambda program, machine, budget: [program],
           "plan": _with_budget("--evaluations", 20, "--no-cache"),
           "compare": _with_budget("--evaluations", 20), "bound": _with_budget()}
SAYS = {"info": "program", "plan": "proved", "compare": "home", "bound": "at least"}


if __name__ == "__main__":
    for model in models.LARGE:
        write(model)
        print(path_of(model), path_of(model).stat().st_size, "bytes")
