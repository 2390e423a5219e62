"""Execution traces and logs of DTR: what says which op reads and makes which tensor."""

import json

import pytest

from tidepool_torch import import_trace


def accesses(program):
    """{op: {tensor: mode}}"""
    return {op["name"]: {program["tensors"][a["tensor"]]["name"]: a["mode"] for a in op["accesses"]}
            for op in program["ops"]}


# ---- execution traces

SCHEMAS = {
    "aten::mm": "aten::mm(Tensor self, Tensor mat2) -> Tensor",
    "aten::relu_": "aten::relu_(Tensor(a!) self) -> Tensor(a!)",
    "aten::t": "aten::t(Tensor(a) self) -> Tensor(a)",
    "aten::dropout": "aten::dropout(Tensor input, float p, bool train) -> Tensor",
    "aten::expand": "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    "aten::empty": "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None) -> Tensor",
    "aten::_foreach_add_": "aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, "
                           "Scalar alpha=1) -> ()",
    "aten::cudnn_batch_norm": "aten::cudnn_batch_norm(Tensor input, Tensor weight, Tensor? bias, "
                              "Tensor? running_mean, Tensor? running_var) -> (Tensor, Tensor)",
    "c10d::allreduce_": "c10d::allreduce_(Tensor[] tensors, int timeout) -> (Tensor[], int)",
}


class Trace:
    """Nodes of a trace; each of them ends before the next of its parent begins."""

    def __init__(self, flat=False):
        self.nodes = []
        self.flat = flat  # as older files have them
        self.add("root", parent=1)

    def add(self, name, inputs=(), outputs=(), parent=1, shapes=None):
        number = len(self.nodes) + 1
        shapes = shapes or [[] if self.is_tensor(i) else None for i in inputs]
        node = {"id": number, "name": name, "ctrl_deps": parent,
                "attrs": [{"name": "op_schema", "value": SCHEMAS.get(name, "")}]}
        if self.flat:
            node.update({"inputs": list(inputs), "outputs": list(outputs), "input_shapes": shapes,
                         "output_shapes": [], "op_schema": node.pop("attrs")[0]["value"],
                         "parent": node.pop("ctrl_deps")})
        else:
            node.update({"inputs": {"values": list(inputs), "shapes": shapes},
                         "outputs": {"values": list(outputs), "shapes": []}})
        self.nodes.append(node)
        return number

    @staticmethod
    def is_tensor(value):
        return isinstance(value, list) and len(value) == 6

    def imported(self, tmp_path, **more):
        path = tmp_path / "trace.json"
        # In the order in which they end, as the observer writes them.
        path.write_text(json.dumps({"schema": "1.1.1", "nodes": self.nodes[::-1]}))
        return import_trace(path, **more)


def t(tensor, storage, elements=10, device="cuda:0"):
    return [tensor, storage, 0, elements, 4, device]


@pytest.mark.parametrize("flat", [False, True])
def test_an_address_that_is_returned_and_was_not_given_is_a_new_storage(tmp_path, flat):
    trace = Trace(flat)
    trace.add("aten::mm", [t(1, 100), t(2, 200)], [t(3, 300)])
    trace.add("aten::mm", [t(3, 300), t(2, 200)], [t(4, 400)])
    trace.add("aten::mm", [t(4, 400), t(2, 200)], [t(5, 300, 20)])  # 300 was given back and taken
    trace.add("aten::relu_", [t(5, 300, 20)], [t(5, 300, 20)])
    found = trace.imported(tmp_path)
    assert accesses(found.program) == {
        "0.aten::mm": {"s0.found": "read", "s1.found": "read", "s2.aten::mm": "write"},
        "1.aten::mm": {"s2.aten::mm": "read", "s1.found": "read", "s3.aten::mm": "write"},
        "2.aten::mm": {"s3.aten::mm": "read", "s1.found": "read", "s4.aten::mm": "write"},
        "3.aten::relu_": {"s4.aten::mm": "update"}}
    sizes = {x["name"]: x["bytes"] for x in found.program["tensors"]}
    assert sizes["s2.aten::mm"] == 40 and sizes["s4.aten::mm"] == 80
    # Taken at once at most: both that were found, the second product and the third.
    assert found.peak == 40 + 40 + 40 + 80 and found.use == "what-if"
    assert (found.before, found.after) == (None, None)


def test_views_run_no_kernel_and_do_not_make_storages_larger(tmp_path):
    trace = Trace()
    trace.add("aten::t", [t(1, 100)], [t(2, 100)])
    trace.add("aten::expand", [t(2, 100), [1000]], [t(3, 100, 1000)])
    trace.add("aten::mm", [t(3, 100, 1000), t(4, 200)], [t(5, 300)])
    found = trace.imported(tmp_path)
    assert [op["kind"] for op in found.program["ops"]] == ["aten::mm"]
    assert {x["bytes"] for x in found.program["tensors"]} == {40}


def test_what_runs_inside_of_an_op_is_scratch_even_at_an_old_address(tmp_path):
    trace = Trace()
    trace.add("aten::mm", [t(1, 100), t(2, 200)], [t(3, 300)])
    outer = trace.add("aten::dropout", [t(1, 100), 0.5, True], [t(7, 500)])
    trace.add("aten::empty", [[10]], [t(5, 400)], outer)
    trace.add("aten::relu_", [t(5, 400)], [t(5, 400)], outer)
    # No op shows how 300 came to be here: not the product, which the outer op was not given.
    trace.add("aten::relu_", [t(6, 300)], [t(6, 300)], outer)
    trace.add("aten::mm", [t(7, 500), t(2, 200)], [t(8, 600)])
    program = trace.imported(tmp_path).program
    assert accesses(program)["1.aten::dropout"] == {
        "s0.found": "read", "s3.aten::dropout": "write", "s4.aten::dropout": "write",
        "s5.aten::dropout": "write"}
    random = {op["kind"]: (op["random"], op["recomputable"]) for op in program["ops"]}
    assert random["aten::dropout"] == (True, False) and random["aten::mm"] == (False, True)


def test_hidden_and_unmarked_writes_are_updates_and_never_computed_again(tmp_path):
    trace = Trace()
    trace.add("aten::cudnn_batch_norm", [t(n, 100 * n) for n in range(1, 6)],
              [t(6, 600), t(7, 700)])
    trace.add("c10d::allreduce_", [[t(6, 600)], -1], [[t(6, 600)], 0])
    trace.add("nobody::knows", [t(7, 700)])
    trace.add("aten::_foreach_add_", [[t(1, 100), t(2, 200)], [t(6, 600), t(7, 700)], 1])
    program = trace.imported(tmp_path).program
    found = accesses(program)
    assert [found["0.aten::cudnn_batch_norm"][f"s{n}.found"] for n in range(5)] == [
        "read", "read", "read", "update", "update"]
    assert found["1.c10d::allreduce_"] == {"s5.aten::cudnn_batch_norm": "update"}
    assert found["2.nobody::knows"] == {"s6.aten::cudnn_batch_norm": "update"}
    assert found["3.aten::_foreach_add_"] == {
        "s0.found": "update", "s1.found": "update", "s5.aten::cudnn_batch_norm": "read",
        "s6.aten::cudnn_batch_norm": "read"}
    assert not any(op["recomputable"] for op in program["ops"])


def test_a_step_knows_what_comes_before_and_behind_it(tmp_path):
    trace = Trace()
    for step in (1, 2, 3):
        mark = trace.add(f"ProfilerStep#{step}")
        trace.add("aten::mm", [t(1, 100), t(2, 200)], [t(3, 300)], mark)
        update = trace.add("Optimizer.step#SGD.step", parent=mark)
        trace.add("aten::_foreach_add_", [[t(1, 100)], [t(9, 800)], 1], [], update)
        trace.add("aten::mm", [t(3, 300), t(2, 200)], [t(9, 800)], mark)
    found = trace.imported(tmp_path)
    assert found.step == 2 and found.steps == [1, 2, 3]
    by_name = {x["name"]: x for x in found.program["tensors"]}
    # 800 is made anew behind its last use in each step: one comes from before, and one stays until
    # the end for the next.
    old, new = (by_name[n] for n in ("s4.found", "s6.aten::mm"))
    assert not old["persistent"] and not new["persistent"]
    kinds = [op["kind"] for op in found.program["ops"]]
    assert kinds == ["feed", "aten::mm", "aten::_foreach_add_", "aten::mm"]
    assert [x["name"] for x in found.program["tensors"] if x["persistent"]] == ["s0.found", "s1.found"]
    assert found.program["ops"][2]["phase"] == "update"
    assert any("are made in the step and used in the next" in note for note in found.notes)
    last = trace.imported(tmp_path, step=3)
    assert [op["kind"] for op in last.program["ops"]] == kinds[1:]  # nobody knows what comes then


def test_times_are_of_the_cost_model(tmp_path):
    trace = Trace()
    trace.add("aten::mm", [t(1, 100, 1 << 22), t(2, 200, 1 << 22)], [t(3, 300, 1 << 22)],
              shapes=[[2048, 2048], [2048, 2048]])
    trace.nodes[-1]["outputs"]["shapes"] = [[2048, 2048]]
    op = trace.imported(tmp_path).program["ops"][0]
    assert op["flops"] == 2.0 * 2048**3 and op["traffic"] == 3 * 4 << 22
    assert op["algorithms"][0]["name"] == "model of gtx1080ti"
    assert 1e6 < op["algorithms"][0]["time_ns"] < 3e6


def test_pythons_numbers_are_no_tensors(tmp_path):
    trace = Trace()
    trace.add("aten::mm", [t(1, 100, 10, "cpu"), t(2, 200, 10, "cpu")], [t(3, 300, 10, "cpu")])
    trace.add("aten::mm", [t(1, 100, 10, "cpu"), t(8, 300, 1, "cpu")], [t(4, 400, 10, "cpu")],
              shapes=[[10], []])
    assert accesses(trace.imported(tmp_path).program)["1.aten::mm"] == {
        "s0.found": "read", "s3.aten::mm": "write"}


def test_a_trace_of_this_torch_has_the_peak_of_its_profile(tmp_path):
    torch = pytest.importorskip("torch", minversion="2.12")
    from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 10))
    optimizer = torch.optim.Adam(model.parameters())
    ops, bytes_ = tmp_path / "ops.json", tmp_path / "bytes.json"
    observer = ExecutionTraceObserver()
    observer.register_callback(str(ops))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True,
                 schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
                 execution_trace_observer=observer,
                 on_trace_ready=lambda p: p.export_chrome_trace(str(bytes_))) as profiler:
        for _ in range(5):
            model(torch.randn(16, 3, 16, 16)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    found, lives = import_trace(ops), import_trace(bytes_, step=3)
    assert found.step == 3 and found.format == "execution"
    state = sum(p.numel() * p.element_size() for p in model.parameters()) * 3
    persistent = sum(x["bytes"] for x in found.program["tensors"] if x["persistent"])
    assert persistent == pytest.approx(state, rel=0.02)
    assert found.peak - persistent == pytest.approx(lives.peak - lives.before, rel=0.05)


# ---- logs of DTR

LOG = [
    {"INSTRUCTION": "ANNOTATE", "ANNOTATION": "START"},
    {"INSTRUCTION": "CONSTANT", "NAME": "w"},
    {"INSTRUCTION": "MEMORY", "NAME": "w", "MEMORY": "1000"},
    {"INSTRUCTION": "CONSTANT", "NAME": "x"},
    {"INSTRUCTION": "MEMORY", "NAME": "x", "MEMORY": "300"},
    {"INSTRUCTION": "CALL", "NAME": "t", "ARGS": ["w"], "RESULT": ["v"], "TIME": "10"},
    {"INSTRUCTION": "MEMORY", "NAME": "v", "MEMORY": "1000"},
    {"INSTRUCTION": "ALIAS", "NAME": "v", "ALIAS": "0"},
    {"INSTRUCTION": "CALL", "NAME": "mm", "ARGS": ["x", "v"], "RESULT": ["y"], "TIME": "700"},
    {"INSTRUCTION": "MEMORY", "NAME": "y", "MEMORY": "2000"},
    {"INSTRUCTION": "ALIAS", "NAME": "y", "ALIAS": "-1"},
    {"INSTRUCTION": "COPY", "DST": "z", "SRC": "y"},
    {"INSTRUCTION": "RELEASE", "NAME": "y"},
    {"INSTRUCTION": "RELEASE", "NAME": "x"},
    {"INSTRUCTION": "CALL", "NAME": "dropout", "ARGS": ["z"], "RESULT": ["d"], "TIME": "80"},
    {"INSTRUCTION": "MEMORY", "NAME": "d", "MEMORY": "500"},
    {"INSTRUCTION": "ANNOTATE", "ANNOTATION": "BACKWARD"},
    {"INSTRUCTION": "MUTATE", "NAME": "add_", "ARGS": ["d", "v"], "MUTATE": [0], "TIME": "300"},
    {"INSTRUCTION": "RELEASE", "NAME": "z"},
    {"INSTRUCTION": "RELEASE", "NAME": "v"}]


def log(tmp_path, lines, **more):
    path = tmp_path / "step.log"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return import_trace(path, **more)


def test_a_log_has_views_frees_mutations_and_an_update(tmp_path):
    found = log(tmp_path, LOG)
    program = found.program
    assert accesses(program) == {
        "feed.x": {"x": "write"}, "1.mm": {"x": "read", "w": "read", "y": "write"},
        "2.dropout": {"y": "read", "d": "write"}, "3.add_": {"d": "update", "w": "read"},
        "update.w": {"w": "update"}}
    held = {x["name"]: x.get("released_at") for x in program["tensors"]}
    assert held == {"w": None, "x": None, "y": 3, "d": 4}
    assert found.peak == 3500 and (found.before, found.after) == (1300, 1500)
    assert {op["name"]: op["recomputable"] for op in program["ops"]} == {
        "feed.x": False, "1.mm": True, "2.dropout": False, "3.add_": True, "update.w": False}
    assert [op["phase"] for op in program["ops"]] == ["other", "forward", "forward", "backward",
                                                      "update"]
    assert [op["algorithms"][0]["time_ns"] for op in program["ops"][:4]] == [0, 700, 80, 300]
    assert found.use == "plans" and "(dtr, for plans)" in program["name"]
