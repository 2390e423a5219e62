"""docs/TUTORIAL.md: its script with and without the three lines, and its other code."""

import os
import pathlib
import re
import resource
import subprocess
import sys

import pytest
import torch

import tidepool_torch as tidepool
from frameworks import FIT, layers, rows

TEXT = (pathlib.Path(__file__).parent.parent / "docs" / "TUTORIAL.md").read_text()
SCRIPT = re.search(r"```python\n(.*?)```", TEXT, re.S)[1]


def changed(script):
    """The script with the diffs of the tutorial applied, and how many lines they add."""
    added = 0
    for diff in re.findall(r"```diff\n(.*?)```", TEXT, re.S):
        lines = diff.splitlines()
        old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] in mark)
                    for mark in (" -", " +"))
        assert script.count(old) == 1
        script = script.replace(old, new)
        added += sum(line[0] == "+" for line in lines) - sum(line[0] == "-" for line in lines)
    return script, added


def run(script, folder, data_limit=None):
    def limit():
        if data_limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (data_limit, data_limit))

    path = folder / "train.py"
    path.write_text(script)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("LD_PRELOAD", None)
    return subprocess.run([sys.executable, str(path)], cwd=folder, env=environment, timeout=600,
                          preexec_fn=limit, capture_output=True, text=True, check=False)


def losses(done):
    return [line for line in done.stdout.splitlines() if line.startswith("step ")]


IMPORTS = """import torch, tidepool_torch
torch.optim.AdamW([torch.nn.Parameter(torch.ones(3))])  # imports more
print(next(l for l in open("/proc/self/status") if l.startswith("VmData")).split()[1])
"""


def test_three_lines_and_a_number(tmp_path):
    """Between what the script needs and what it needs with a budget it dies without and ends with
    one, with the losses that it has where memory is plenty."""
    after, added = changed(SCRIPT)
    assert added == 3
    plain = run(SCRIPT, tmp_path)
    assert plain.returncode == 0 and len(losses(plain)) == 6

    limit = int(run(IMPORTS, tmp_path).stdout) * 1024 + (300 << 20)
    died = run(SCRIPT, tmp_path, limit)
    assert died.returncode != 0 and "can't allocate memory" in died.stderr
    inside = run(after, tmp_path, limit)
    assert inside.returncode == 0, inside.stderr
    assert losses(inside) == losses(plain)
    assert re.search(r"tidepool: 150.0 MiB of 28\d.\d MiB: [1-9]\d* tensors swapped", inside.stderr)
    assert os.listdir(tmp_path) == ["train.py"]


def block(name, **names):
    code = re.search(rf"```python {name}\n(.*?)```", TEXT, re.S)[1]
    space = {"torch": torch, "F": torch.nn.functional, **names}
    exec(compile(code, f"TUTORIAL.md, {name}", "exec"), space)  # pylint: disable=exec-used
    return space


def test_ahead(capsys):
    space = {}
    exec(SCRIPT.split("for number,")[0], space)  # pylint: disable=exec-used
    made = block("ahead", tidepool=tidepool, **{n: space[n] for n in ("model", "optimizer",
                                                                      "batches")})
    said = capsys.readouterr()
    assert re.match(r"150.0 MiB of 28\d.\d MiB \(floor \d+.\d MiB\): [1-9]\d* tensors", said.out)
    assert said.err.startswith("tidepool: ahead of time, first step: 149.0 MiB of ")
    made["budget"].close()


def test_accumulation_and_checkpoint(tmp_path):
    model = layers()
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = rows(64).tensors
    budget = tidepool.fit(model, optimizer, **{**FIT, "peak": "65%"})
    block("accumulation", model=model, optimizer=optimizer, budget=budget, steps=4,
          micro_batches=lambda: [(x[i::4], y[i::4]) for i in range(4)])
    assert budget.plan is not None
    made = block("checkpoint", model=model, optimizer=optimizer, budget=budget,
                 path=tmp_path / "both.pt")
    assert made["largest"] > 0
    saved = torch.load(tmp_path / "both.pt")
    model.load_state_dict(saved["model"])
    torch.optim.AdamW(layers().parameters()).load_state_dict(saved["optimizer"])
    budget.close()


def test_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    from test_transformers import Data, model
    arguments = transformers.TrainingArguments(
        str(tmp_path), per_device_train_batch_size=4, gradient_accumulation_steps=4, report_to=[],
        use_cpu=True, disable_tqdm=True, num_train_epochs=1)
    made = block("transformers", model=model(128), arguments=arguments, data=Data(64))
    assert made["trainer"].state.global_step == 4


def test_lightning(tmp_path, monkeypatch):
    pytest.importorskip("lightning.pytorch")
    from test_lightning import Classifier, loader
    monkeypatch.chdir(tmp_path)
    made = block("lightning", module=Classifier(), loader=loader(8 * 64))
    assert made["trainer"].global_step == 2


def test_accelerate():
    pytest.importorskip("accelerate")
    model = layers()
    made = block("accelerate", model=model, optimizer=torch.optim.AdamW(model.parameters()),
                 loader=torch.utils.data.DataLoader(rows(8 * 64), batch_size=64))
    assert made["budget"].steps == 2
    made["budget"].close()
