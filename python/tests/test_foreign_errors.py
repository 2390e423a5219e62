"""What is no trace, and the commands `import` and `memory-viz`: messages and exit codes."""

import copy
import gzip
import json
import os
import pickle
import random
import subprocess
import sys

import pytest

import test_foreign_lives as lives
import test_foreign_ops as ops
from tidepool_torch import import_trace
from tidepool_torch.foreign import BadTrace, NoSuchStep


class Runs:
    """What a pickle could run."""

    def __reduce__(self):
        return print, ("this must not be printed",)


def execution():
    trace = ops.Trace()
    mark = trace.add("ProfilerStep#3")
    outer = trace.add("aten::dropout", [ops.t(1, 100), 0.5, True], [ops.t(3, 300)], mark)
    trace.add("aten::empty", [[10]], [ops.t(3, 300)], outer)
    return {"schema": "1.1.1", "nodes": trace.nodes}


KINETO = lives.kineto(lives.memory(42, 64, 1, 64), lives.memory(43, -64, 1, 0))
GOOD = {"snapshot": lives.SNAPSHOT, "kineto": KINETO, "execution": execution(), "dtr": ops.LOG}


def written(tmp_path, content):
    path = tmp_path / "trace"
    if isinstance(content, list):
        content = "".join(json.dumps(line) + "\n" for line in content).encode()
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def without(content, *keys):
    changed = copy.deepcopy(content)
    place = changed
    for key in keys[:-1]:
        place = place[key]
    del place[keys[-1]]
    return changed


def changed(content, value, *keys):
    made = copy.deepcopy(content)
    place = made
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return made


@pytest.mark.parametrize("content, said", [
    (b"", "the file is empty"),
    (b"\xff\xfe\x00", "neither a pickle nor JSON"),
    (b"{\"nodes\": [", "not JSON (Expecting value: line 1 column 12"),
    (gzip.compress(json.dumps(KINETO).encode())[:-20], "the gzip data is cut off or damaged"),
    (b"\x1f\x8b\x08" + b"x" * 40, "the gzip data is cut off or damaged"),
    (pickle.dumps(lives.SNAPSHOT)[:-50], "the pickle cannot be read"),
    (pickle.dumps({"device_traces": Runs()}), "it holds builtins.print, and a snapshot holds numbers"),
    ({"hello": 1}, "no trace that is known. A memory snapshot has a field 'device_traces'"),
    (b"[]", "no trace that is known"),
    (b"3", "no trace that is known"),
    (without(lives.SNAPSHOT, "segments"), "field 'segments' is missing; a list of segments"),
    (without(lives.SNAPSHOT, "device_traces", 1, 1, "addr"),
     "field 'device_traces[1][1].addr' is missing; an address belongs there"),
    (changed(lives.SNAPSHOT, "7", "device_traces", 1, 1, "size"),
     "field 'device_traces[1][1].size' is '7'; a number of bytes belongs there"),
    (changed(lives.SNAPSHOT, [[]], "device_traces"), "no entry of 'device_traces' has action 'alloc'"),
    ({"traceEvents": [lives.op("aten::mm", 1, 2)]}, "profile_memory=True"),
    (changed(KINETO, {"Device Type": 1}, "traceEvents", -1, "args"),
     "traceEvents[8].args.Bytes' is missing; a number of bytes"),
    (changed(KINETO, "ProfilerStep#x", "traceEvents", 0, "name"), "'ProfilerStep#N' belongs there"),
    ({"nodes": []}, "no node of 'nodes' has tensors"),
    (without(GOOD["execution"], "nodes", 2, "inputs"), "field 'nodes[2].inputs' is missing"),
    (without(GOOD["execution"], "nodes", 1, "ctrl_deps"), "field 'nodes[1].ctrl_deps' is missing"),
    (without(ops.LOG, 8, "TIME"), "field 'line 9.TIME' is None; nanoseconds belong there"),
    (without(ops.LOG, 3), "line 4: no line before it makes 'x'"),
    (ops.LOG[:3], "no CALL makes a tensor"),
    (b'{"INSTRUCTION": "ANNOTATE"}\n{"INSTRU', "line 2: not JSON"),
])
def test_a_message_names_file_and_field_and_what_belongs_there(tmp_path, capsys, content, said):
    path = written(tmp_path, content)
    with pytest.raises(BadTrace) as caught:
        import_trace(path)
    assert str(caught.value).startswith(str(path)) and said in str(caught.value)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name, step, said", [
    ("kineto", 9, "there is no step 9 in events 'ProfilerStep#N'; it has 4, 5"),
    ("execution", 1, "there is no step 1 in nodes 'ProfilerStep#N'; it has 3"),
    ("snapshot", 0, "there is no step 0 in field 'external_annotations' (ends of Optimizer.step); "
                    "it marks none"),
    ("dtr", 0, "there is no step 0 in a DTR log; it marks none")])
def test_a_step_that_is_not_there_is_named_with_those_that_are(tmp_path, name, step, said):
    with pytest.raises(NoSuchStep) as caught:
        import_trace(written(tmp_path, GOOD[name]), step=step)
    assert said in str(caught.value)


def test_an_unknown_format_and_one_that_does_not_fit(tmp_path):
    with pytest.raises(ValueError, match="format='csv': one of snapshot, kineto, execution, dtr"):
        import_trace(written(tmp_path, KINETO), format="csv")
    for format in ("snapshot", "execution", "dtr"):
        with pytest.raises(BadTrace):
            import_trace(written(tmp_path, KINETO), format=format)


def places(content, found=()):
    """Ways to every value inside of a content."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield found + (key,)
        if isinstance(value, (dict, list, tuple)):
            yield from places(value, found + (key,))


@pytest.mark.parametrize("name", list(GOOD))
def test_whatever_is_wrong_is_a_bad_trace(tmp_path, name):
    """Each value of a small trace is taken away, and is something else, once."""
    content = json.loads(json.dumps(GOOD[name]))
    draw = random.Random(1)
    refused = 0
    for way in places(content):
        others = [None, "x", -1, 3.5, True, [], {}, [[1]], 1 << 70]
        for made in [without(content, *way), *(changed(content, o, *way)
                                               for o in draw.sample(others, 2))]:
            try:
                import_trace(written(tmp_path, made), format=name)
            except BadTrace:
                refused += 1
    assert refused > 20


# ---- the commands


def command(*arguments, **environment):
    return subprocess.run([sys.executable, "-m", "tidepool_torch", *map(str, arguments)],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


@pytest.fixture(name="no_torch")
def _no_torch(tmp_path):
    """An environment in which torch cannot be imported, as if it were not there."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "torch.py").write_text("raise ModuleNotFoundError('no torch')\n")
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    return {"PYTHONPATH": f"{tmp_path / 'hidden'}{os.pathsep}{package}"}


def test_import_writes_a_program_and_says_what_it_is_for(tmp_path, no_torch):
    out = tmp_path / "step.json"
    done = command("import", written(tmp_path, KINETO), "-o", out, "--step", 5, **no_torch)
    assert done.returncode == 0, done.stderr
    assert "kineto, step 5 of 4, 5: 1 ops, 1 tensors, peak 64 bytes" in done.stdout
    assert "use: where tensors lie" in done.stdout
    assert f"written: {out}. Next: tidepool info {out}" in done.stdout
    program = json.loads(out.read_text())
    assert program["name"] == "trace (kineto, for placement)" and program["tensors"][0]["pinned"]


def test_import_has_its_summary_as_json(tmp_path, no_torch):
    out = tmp_path / "step.json"
    done = command("import", written(tmp_path, ops.LOG), "--json", "-o", out, **no_torch)
    told = json.loads(done.stdout)
    assert told["format"] == "dtr" and told["use"] == "plans" and told["peak"] == 3500
    assert told["written"] == str(out) and told["ops"] == 5 and told["notes"]


@pytest.mark.parametrize("options, code, said", [
    (["--step", "9"], 2, "tidepool-torch import: "),
    (["--step", "x"], 2, "invalid int value"),
    (["--format", "csv"], 2, "invalid choice"),
    (["--format", "dtr"], 3, "the name of an instruction belongs there"),
])
def test_import_ends_with_the_codes_of_the_other_commands(tmp_path, no_torch, options, code, said):
    done = command("import", written(tmp_path, KINETO), "-o", tmp_path / "out.json", *options,
                   **no_torch)
    assert done.returncode == code and said in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_import_of_a_file_that_is_not_there(tmp_path, no_torch):
    done = command("import", tmp_path / "nothing", "-o", tmp_path / "out.json", **no_torch)
    assert done.returncode == 3 and "nothing: No such file or directory" in done.stderr
    done = command("import", written(tmp_path, KINETO), "-o", tmp_path / "no" / "out.json",
                   **no_torch)
    assert done.returncode == 1 and "No such file or directory" in done.stderr


def test_memory_viz_ends_with_the_codes_of_the_other_commands(tmp_path, no_torch):
    out = tmp_path / "s.pickle"
    assert command("memory-viz", tmp_path / "nothing", "-o", out, **no_torch).returncode == 3
    none = command("memory-viz", written(tmp_path, KINETO), "-o", out,
                   TIDEPOOL_LIBRARY="/nowhere/libtidepool.so.1", **no_torch)
    assert none.returncode == 1 and "set TIDEPOOL_LIBRARY" in none.stderr
