"""Plans as snapshots that PyTorch's memory_viz reads."""

import bisect
import json
import os
import pickle
import shutil
import subprocess
import sys

import pytest

from tidepool_torch.base import library
from tidepool_torch.base.errors import TidepoolError
from tidepool_torch.planning.memory_viz import snapshot

TIDEPOOL = os.environ.get("TIDEPOOL_PROGRAM") or shutil.which("tidepool")


def _why_not():
    if TIDEPOOL is None:
        return "no program tidepool: set TIDEPOOL_PROGRAM"
    try:
        library.library()
    except TidepoolError as error:
        return str(error)
    return None


needs_program = pytest.mark.skipif(_why_not() is not None, reason=str(_why_not()))


class Replay:
    """The events of a device, one by one: no block lies on another, and each is given back as it
    was taken."""

    def __init__(self, events):
        self.living = []  # (address, bytes), in order
        self.peak = self.now = self.highest = 0
        self.names = set()
        times = [e["time_us"] for e in events]
        assert times == sorted(times) and times[0] >= 0
        arena = events[0]
        assert arena["action"] == "segment_alloc"
        self.lowest, self.size = arena["addr"], arena["size"]
        for event in events[1:]:
            self.step(event["action"], (event["addr"], event["size"]), event["frames"])

    def step(self, action, block, frames):
        at = bisect.bisect(self.living, block)
        if action == "alloc":
            assert at == 0 or sum(self.living[at - 1]) <= block[0]
            assert at == len(self.living) or sum(block) <= self.living[at][0]
            assert self.lowest <= block[0] and sum(block) <= self.lowest + self.size
            self.living.insert(at, block)
            self.now += block[1]
            self.peak = max(self.peak, self.now)
            self.highest = max(self.highest, sum(block) - self.lowest)
            self.names.add(frames[0]["name"])
        elif action == "free_completed":
            assert self.living.pop(at - 1) == block
            self.now -= block[1]
        else:
            assert action == "free_requested" and block in self.living


def replayed(data, device_bytes, alignment):
    """Replays the one device of a snapshot; its segment is what is left at the end."""
    (segment,), (events,) = data["segments"], data["device_traces"]
    replay = Replay(events)
    assert segment["address"] == replay.lowest
    assert segment["total_size"] == device_bytes == sum(b["size"] for b in segment["blocks"])
    assert device_bytes - alignment < replay.highest <= device_bytes
    assert [(b["address"], b["size"]) for b in segment["blocks"]
            if b["state"] == "active_allocated"] == replay.living
    return replay


def plan(tmp_path, *options):
    path = tmp_path / "plan.json"
    done = subprocess.run([TIDEPOOL, "plan", *options, "--machine", "gtx1080ti", "--evaluations",
                           "10", "--time-limit", "100ms", "-o", str(path)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


@needs_program
@pytest.mark.parametrize("options", [
    ["tiny-vgg", "--budget", "60%"], ["vgg16", "--batch", "20", "--budget", "50%"],
    ["tiny-vgg", "--budget", "100%"], ["resnet18", "--batch", "16", "--budget", "45%"]])
def test_a_plan_files_events_reach_its_arenas_end_and_its_load(tmp_path, options):
    path, out = plan(tmp_path, *options), tmp_path / "snapshot.pickle"
    done = subprocess.run([sys.executable, "-m", "tidepool_torch", "memory-viz", str(path), "-o",
                           str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    handle = library.library().read("plan", path.read_text(), "plan")
    info = library.library().describe_plan(handle)
    with open(out, "rb") as file:
        replay = replayed(pickle.load(file), info.device_bytes, 512)
    # The plan counts blocks with what they take to be aligned.
    assert info.load - 512 * len(replay.names) < replay.peak <= info.load
    tensors = {t["name"] for t in program_of(handle)["tensors"]}
    assert replay.names <= tensors | {"workspace"}


def program_of(handle):
    return json.loads(library.library().plan_text(handle))["program"]


@needs_program
def test_a_file_that_is_no_plan_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("{}")
    done = subprocess.run([sys.executable, "-m", "tidepool_torch", "memory-viz", str(path), "-o",
                           str(tmp_path / "out")], capture_output=True, text=True, check=False)
    assert done.returncode == 3 and str(path) in done.stderr and "Traceback" not in done.stderr


def _planned(peak):
    models = pytest.importorskip("models")
    import tidepool_torch as tidepool
    from tidepool_torch.planning.planning import machine_of
    from training import Style, one_step
    training = models.make(models.tiny_gpt)
    budget = tidepool.fit(training.model, training.optimizer, peak=peak, report=False,
                          evaluations=50, min_bytes=1024,
                          machine=machine_of(2e7, 2e7, alignment=64))
    for n in range(3):
        one_step(training, n, Style(), budget.step)
    return budget


def _torch_viz():
    pytest.importorskip("torch", minversion="2.12")
    from torch.cuda import _memory_viz
    return _memory_viz


def test_a_budgets_plan_is_read_by_pytorchs_own_tools(tmp_path):
    viz = _torch_viz()
    budgets = [_planned(peak) for peak in ("60%", "90%")]
    read = []
    for i, budget in enumerate(budgets):
        path = tmp_path / f"{i}.pickle"
        budget.export(path)
        read.append(pickle.loads(path.read_bytes()))
        replay = replayed(read[-1], budget.plan.info.device_bytes, 64)
        assert budget.report().moved_out + budget.report().reruns > 0
        name = next(t["name"] for t in program_of(budget.plan.handle)["tensors"]
                    if t["persistent"])
        assert name in replay.names
        assert name in viz.memory(read[-1], format_flamegraph=str)
        assert "total_reserved" in viz.segsum(read[-1])
        assert "Device 0" in viz.trace(read[-1])
        assert viz.trace_plot(read[-1]).count("<html>") == 1
        assert viz.segment_plot(read[-1]).count("<html>") == 1
    compared = viz.compare(*(s["segments"] for s in read), format_flamegraph=str)
    assert "only_before" in compared and "only_after" in compared
    for budget in budgets:
        budget.close()


def test_a_snapshot_of_a_plan_imports_with_the_peak_of_its_events(tmp_path):
    _torch_viz()
    from tidepool_torch import import_trace
    budget = _planned("70%")
    path = tmp_path / "plan.pickle"
    budget.export(path)
    data = snapshot(budget.plan.handle)
    found = import_trace(path)
    peak = replayed(data, budget.plan.info.device_bytes, 64).peak
    # A snapshot's sizes are rounded up to 512 bytes.
    assert peak <= found.peak < peak + 512 * len(found.program["tensors"])
    budget.close()
