"""Two gloo ranks under a trainer: the bits of the same without a budget, on each."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("name", ["transformers", "lightning"])
def test_two_ranks(name, tmp_path):
    pytest.importorskip({"lightning": "lightning.pytorch"}.get(name, name))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(
        [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         str(HERE / "trainer_worker.py"), name, str(tmp_path)],
        env=environment, timeout=600, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # Two ranks may share a line of output.
    ranks = [json.JSONDecoder().raw_decode(told)[0] for told in done.stdout.split("RANK ")[1:]]
    assert len(ranks) == 2
    for rank in ranks:
        assert rank["differences"] == []
        assert rank["moved"] > 0 and rank["planned_steps"] > 0 and rank["divergences"] == 0
