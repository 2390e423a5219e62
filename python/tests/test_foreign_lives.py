"""Memory snapshots and traces of the profiler: what takes bytes and gives them back, without reads."""

import gzip
import json
import pickle

import pytest

from tidepool_torch import import_trace
from tidepool_torch.foreign.writer import peak_of

KIB = 1024


def event(action, addr, size, time, where="f"):
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time,
            "frames": [{"name": "empty", "filename": "/x/torch/functional.py", "line": 3},
                       {"name": where, "filename": "/home/me/train.py", "line": 7}]}


def freed(addr, size, time):
    return [event("free_requested", addr, size, time), event("free_completed", addr, size, time)]


def segment(*blocks):
    """(address, size, asked for, state) of blocks, one behind the other."""
    return {"device": 0, "address": blocks[0][0], "total_size": sum(b[1] for b in blocks),
            "blocks": [{"address": a, "size": s, "requested_size": r, "state": state}
                       for a, s, r, state in blocks]}


# Weights at 0x1000 and a batch at 0x9000 are there before; the block of 4 KiB is used by two tensors
# one after the other, and one of 1 KiB is left behind.
SNAPSHOT = {
    "segments": [segment((0x1000, 8 * KIB, 7 * KIB, "active_allocated"),
                         (0x3000, 4 * KIB, 0, "inactive"),
                         (0x4000, 1 * KIB, KIB, "active_allocated"))],
    "device_traces": [[], [
        event("segment_alloc", 0x3000, 4 * KIB, 5),
        event("alloc", 0x3000, 4 * KIB - 100, 10, "forward"),
        *freed(0x9000, 2 * KIB, 20),
        *freed(0x3000, 4 * KIB - 100, 30),
        event("alloc", 0x3000, 3 * KIB, 40, "backward"),
        event("alloc", 0x4000, KIB, 50, "backward"),
        *freed(0x3000, 3 * KIB, 60)]]}
for _segment in SNAPSHOT["segments"]:
    _segment["device"] = 1


def imported(tmp_path, content, name="snapshot.pickle", **more):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return import_trace(path, **more)


def lives(program):
    """{tensor: (first op, op until which it is taken)} of those that are not always there."""
    found = {}
    for i, op in enumerate(program["ops"]):
        for access in op["accesses"]:
            tensor = program["tensors"][access["tensor"]]
            if not tensor["persistent"]:
                first = found.get(tensor["name"], (i,))[0]
                found[tensor["name"]] = first, tensor.get("released_at", i)
    return found


@pytest.mark.parametrize("pack", [
    lambda s: pickle.dumps(s), lambda s: pickle.dumps(s, protocol=2), lambda s: s,
    lambda s: gzip.compress(pickle.dumps(s)), lambda s: gzip.compress(json.dumps(s).encode())])
def test_a_snapshot_in_each_form_has_the_lives_it_recorded(tmp_path, pack):
    found = imported(tmp_path, pack(SNAPSHOT))
    assert lives(found.program) == {
        "found.3.9000": (0, 1), "1.forward (train.py:7)": (1, 1),
        "6.backward (train.py:7)": (2, 2), "7.backward (train.py:7)": (2, 2)}
    assert [t["name"] for t in found.program["tensors"] if t["persistent"]] == ["found.1000"]
    # 7 KiB of weights, the batch and the first tensor, in units of the allocator's.
    assert found.peak == 7 * KIB + 2 * KIB + 4 * KIB
    assert (found.before, found.after) == (9 * KIB, 8 * KIB)
    assert [op["algorithms"][0]["time_ns"] for op in found.program["ops"]] == [5000, 30000, 20000]
    assert found.format == "snapshot" and found.step is None
    assert any("blocks that the allocator did not split have 1.0 KiB more" in n for n in found.notes)


def marked(*ends):
    return {**SNAPSHOT, "external_annotations": [
        {"stage": "END", "name": "Optimizer.step#SGD.step", "device": 1, "time_us": t} for t in ends]}


def test_the_steps_of_a_snapshot_end_with_the_optimizers(tmp_path):
    first, last = (imported(tmp_path, marked(35, 70), step=k) for k in (0, None))
    assert (first.step, last.step, last.steps) == (0, 1, [0, 1])
    assert [op["kind"] for op in first.program["ops"]] == ["between_steps", "forward (train.py:7)"]
    assert first.peak == 13 * KIB
    # In the second step the batch is gone.
    assert lives(last.program) == {"6.backward (train.py:7)": (1, 1), "7.backward (train.py:7)": (1, 1)}
    assert (last.peak, last.before, last.after) == (11 * KIB, 7 * KIB, 8 * KIB)


def memory(time, size, addr=None, total=None, tid=1, device=(1, 0)):
    arguments = {"Bytes": size, "Device Type": device[0], "Device Id": device[1]}
    if addr is not None:
        arguments.update({"Addr": addr, "Total Allocated": total})
    return {"ph": "i", "name": "[memory]", "pid": 1, "tid": tid, "ts": time, "args": arguments}


def op(name, time, length, tid=1):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": str(tid), "ts": time,
            "dur": length}


def kineto(*events):
    return {"schemaVersion": 1, "traceEvents": [
        op("ProfilerStep#4", 10, 30), op("ProfilerStep#5", 40, 30),
        op("aten::conv2d", 41, 9), op("aten::empty", 42, 1),
        op("autograd::engine::evaluate_function: XBackward0", 50, 10, 2), op("XBackward0", 51, 8, 2),
        memory(41.5, 999, device=(0, -1)), *events]}


def test_addresses_pair_what_a_profiler_saw_and_totals_say_what_was_there(tmp_path):
    found = imported(tmp_path, kineto(
        memory(20, 100, 0xa, 1100), memory(42.5, 200, 0xb, 1300), memory(43, 200, 0xc, 1500),
        memory(44, -200, 0xb, 1300), memory(52, 50, 0xd, 1350, 2), memory(53, -100, 0xa, 1250, 2),
        memory(54, -200, 0xc, 1050), memory(55, -50, 0xd, 1000)))
    assert found.step == 5 and found.steps == [4, 5]
    assert lives(found.program) == {"0.allocate": (0, 2), "1.aten::conv2d": (1, 1),
                                    "2.aten::conv2d": (1, 2), "4.XBackward0": (2, 2)}
    assert (found.peak, found.before, found.after) == (1500, 1100, 1000)
    # From the step's begin to its end.
    assert [o["algorithms"][0]["time_ns"] for o in found.program["ops"]] == [2500, 9500, 18000]
    assert not any("Total Allocated" in note for note in found.notes)


def test_without_addresses_the_youngest_of_a_size_goes_and_the_load_is_right(tmp_path):
    found = imported(tmp_path, kineto(
        memory(42, 200), memory(43, 200), memory(44, -200), memory(45, 70), memory(46, -300),
        memory(47, -70), memory(48, -200)), step=5)
    assert lives(found.program) == {"found.4": (0, 2), "0.aten::conv2d": (1, 2),
                                    "1.aten::conv2d": (1, 1), "3.aten::conv2d": (2, 2)}
    assert found.peak == 300 + 400
    assert any("single lives are a guess" in note for note in found.notes)
    assert any("'Total Allocated'" in note for note in found.notes)


def test_a_trace_without_a_gpu_is_one_of_the_cpu(tmp_path):
    found = imported(tmp_path, {"traceEvents": [memory(1, 64, device=(0, -1)),
                                                memory(2, -64, device=(0, -1))]})
    assert found.peak == 64 and found.step is None
    assert any("events of the CPU" in note for note in found.notes)
    assert any("all of the file is one step" in note for note in found.notes)


def test_a_profile_of_this_torch_has_the_peak_that_it_says(tmp_path):
    torch = pytest.importorskip("torch", minversion="2.12")
    from torch.profiler import ProfilerActivity, profile, schedule
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    path = tmp_path / "profile.json"
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True,
                 schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
                 on_trace_ready=lambda p: p.export_chrome_trace(str(path))) as profiler:
        for _ in range(3):
            model(torch.randn(32, 64)).sum().backward()
            model.zero_grad()
            profiler.step()
    found = import_trace(path)
    said = [e["args"] for e in json.loads(path.read_text())["traceEvents"]
            if e["name"] == "[memory]"]
    assert found.steps == [1, 2] and found.peak > 2 * 4 * 32 * 256
    assert found.peak <= max(s["Total Allocated"] for s in said)
    assert found.peak in [s["Total Allocated"] for s in said]
    assert found.peak == peak_of(found.program)
