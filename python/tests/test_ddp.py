"""Two gloo ranks on the CPU: DDP and FSDP2 inside a budget on each."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

from tidepool_torch import TidepoolError
from tidepool_torch.base import library

try:
    library.library()
except TidepoolError as missing:
    pytest.skip(str(missing), allow_module_level=True)

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, "ddp_worker.py")
LONGEST = 300  # seconds, after which a rank hangs

VIEW = {"gradient_as_bucket_view": True}
CASES = {
    "resnet": {"model": "resnet", "share": 0.6, "fit": {"host": "64MiB"}},
    "resnet view": {"model": "resnet", "share": 0.6, "ddp": VIEW},
    "resnet view, gradients kept": {"model": "resnet", "share": 0.6, "ddp": VIEW, "to_none": False},
    "resnet no_sync": {"model": "resnet", "share": 0.6, "parts": 2},
    "resnet view no_sync": {"model": "resnet", "share": 0.6, "parts": 2, "ddp": VIEW},
    "resnet find_unused_parameters": {"model": "resnet", "share": 0.6,
                                      "ddp": {"find_unused_parameters": True,
                                              "bucket_cap_mb": 0.05}},
    "gpt": {"model": "gpt", "share": 0.6},
    "gpt view": {"model": "gpt", "share": 0.6, "ddp": VIEW},
    "gpt view, gradients kept": {"model": "gpt", "share": 0.6, "ddp": VIEW, "to_none": False},
    "gpt no_sync": {"model": "gpt", "share": 0.6, "parts": 2},
    "gpt view no_sync": {"model": "gpt", "share": 0.6, "parts": 2, "ddp": VIEW},
    "gpt static_graph": {"model": "gpt", "share": 0.6, "ddp": {"static_graph": True}},
    "resnet fsdp": {"model": "resnet", "share": 0.6, "fsdp": True},
    "resnet fsdp accumulation": {"model": "resnet", "share": 0.6, "fsdp": True, "parts": 2},
    "gpt fsdp": {"model": "gpt", "share": 0.6, "fsdp": True},
    "gpt fsdp slow link": {"model": "gpt", "share": 0.6, "fsdp": True, "link": 1e6},
    "gpt slow link": {"model": "gpt", "share": 0.55, "link": 1e6},
}


def environment(hook):
    values = dict(os.environ)
    values["PYTHONPATH"] = os.pathsep.join(
        [os.path.dirname(HERE), HERE, values.get("PYTHONPATH", "")])
    values["OMP_NUM_THREADS"] = "1"
    if hook is not None:
        values["LD_PRELOAD"] = hook
    return values


def launch(cases, folder, hook=None):
    """Runs the cases on two ranks; for each case the ranks' results, in the order of ranks."""
    store = os.path.join(folder, f"store{time.monotonic_ns()}")
    ranks = []
    for rank in range(2):
        values = {**environment(hook), "RANK": str(rank), "WORLD_SIZE": "2",
                  "LOCAL_WORLD_SIZE": "2", "TEST_STORE": f"file://{store}"}
        ranks.append(subprocess.Popen([sys.executable, WORKER, json.dumps(cases)], env=values,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    outputs = []
    try:
        for process in ranks:
            outputs.append(process.communicate(timeout=LONGEST))
    finally:
        for process in ranks:
            process.kill()
    for process, (_, errors) in zip(ranks, outputs):
        assert process.returncode == 0, "\n".join(e[-3000:] for _, e in outputs)
    return list(zip(*[[json.loads(line) for line in out.splitlines()] for out, _ in outputs]))


@pytest.fixture(scope="module")
def hook(tmp_path_factory):
    """The allocator hook, or None where there is no compiler."""
    if shutil.which("gcc") is None:
        return None
    library = tmp_path_factory.mktemp("hook") / "hook.so"
    source = os.path.join(HERE, "..", "hook", "hook.c")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), source], check=True)
    return str(library)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, hook):
    """By model, so that a process starts once for all of its cases."""
    results, tried = {}, set()

    def of(name):
        if name not in results:
            assert CASES[name]["model"] not in tried, "its ranks failed before"
            model = CASES[name]["model"]
            tried.add(model)
            names = [n for n, case in CASES.items() if case["model"] == model]
            found = launch([CASES[n] for n in names], tmp_path_factory.mktemp(model), hook)
            results.update(zip(names, found))
        return results[name]
    return of


@pytest.mark.parametrize("name", CASES)
def test_ranks_train_inside_their_budgets_to_the_same_bits(trained, hook, name):
    for rank in trained(name):
        assert rank["losses"] and rank["state"] and rank["saved"], rank
        assert rank["planned"] == 3 and rank["divergences"] == 0, rank
        assert rank["moved"] > 0 and rank["reactive"] > 0, rank
        if hook is not None:
            assert rank["most"] <= rank["budget"], rank


@pytest.mark.parametrize("name", ["gpt slow link", "gpt fsdp slow link"])
def test_what_a_slow_link_cannot_bring_is_computed_again(trained, name):
    for rank in trained(name):
        assert rank["reruns"] > 0, rank


@pytest.mark.parametrize("name", ["resnet", "gpt view", "gpt no_sync", "gpt fsdp"])
def test_what_collectives_touch_stays(trained, name):
    for rank in trained(name):
        assert rank["collectives"] > 0, rank
        assert rank["loose"] == 0 and rank["again"] == 0, rank


def test_ranks_of_a_machine_share_its_host_bytes(trained):
    assert [rank["host"] for rank in trained("resnet")] == [32 << 20] * 2


def test_a_rank_that_cannot_be_fails_on_all(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
               WORKER, json.dumps([{"what": "fail", "model": "gpt", "ranks": [1]}])]
    done = subprocess.run(command, env=environment(None), capture_output=True, text=True,
                          timeout=LONGEST, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["type"] == second["type"] == "BudgetInfeasible"
    assert first["error"] == second["error"]
    assert first["error"].startswith("rank 1 of 2: cannot train inside 976.6 KiB: op ")
    assert first["smallest"] == second["smallest"] > 1_000_000
    assert first["step"] == second["step"] == 4
    assert first["readable"] and second["readable"]
    assert abs(first["at"] - second["at"]) < 5


def test_the_worst_rank_has_the_word(tmp_path):
    both, = launch([{"what": "fail", "model": "resnet", "ranks": [0, 1]}], str(tmp_path))
    assert both[0]["error"] == both[1]["error"]
    assert both[0]["smallest"] == both[1]["smallest"] > 1_000_000


def test_other_failures_reach_all_ranks_and_other_spreads_are_refused(tmp_path):
    failed, odd, refused = launch([{"what": "agree"}, {"what": "agree", "odd": True},
                                   {"what": "refuse"}], str(tmp_path))
    for rank in refused:
        assert rank["error"] == (
            "weight is a DTensor that fully_shard() did not make over all ranks: tensor parallelism "
            "and other spreads are not served yet. Next: DistributedDataParallel, or fully_shard() "
            "with a mesh of one dimension")
    for rank in failed:
        assert rank["told"] == "rank 1 of 2: no library"
    for rank in odd:
        assert rank["told"] == "rank 1 of 2: ValueError('odd')"
    for rank in failed + odd:
        assert not rank["one_has_none"] and rank["agreed"]


def test_a_rank_whose_later_shapes_have_no_plan_goes_on(tmp_path, hook):
    case = {"model": "gpt", "budget": 10_000_000, "grow": [1, 6], "steps": 10,
            "ddp": {"forward_sync_buffers": False}}
    (first, second), = launch([case], str(tmp_path), hook)
    for rank in (first, second):
        assert rank["losses"] and rank["state"], rank
    assert first["planned"] == 6 and first["divergences"] == 0
    # Steps of the shapes that came are of another kind, which has no plan.
    assert second["planned"] == 1 and second["plans"] == 1 and second["divergences"] == 0
    assert second["reactive"] > 0
