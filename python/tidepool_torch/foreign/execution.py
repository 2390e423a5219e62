"""PyTorch execution traces (ExecutionTraceObserver): ops with the tensors that they read and make.

Storages have addresses for ids, which are used again: an op that returns a storage that it was not
given has made a new one. The file has no frees, so bytes are taken until their last access, and no
times, so those of a cost model stand in. An op of the program is the outermost one of PyTorch's
own; what runs inside it and is used nowhere else is scratch of its own."""

import collections
import re

from ..base.errors import in_words
from . import cost
from .files import BadTrace, Fields
from .found import Found, chosen_step
from .writer import READ, UPDATE, WRITE, Writer

_STEP = "ProfilerStep#"
_OWN = ("aten::", "prims::")
# Their results may be larger than what they look at.
_STRETCHES = ("aten::expand", "aten::as_strided", "aten::broadcast")
# Kernels that write arguments which their schema does not mark: running statistics.
_HIDDEN_WRITES = {"aten::native_batch_norm": (3, 4), "aten::cudnn_batch_norm": (3, 4),
                  "aten::miopen_batch_norm": (3, 4)}
# By the names of the nodes around an op, up to their first # or colon.
_PHASES = {"autograd": "backward", "Optimizer.step": "update"}
_LOOKS = re.compile(r"Backward\d*$|^detach$")


class _Storage:
    __slots__ = ("number", "bytes", "made_by", "uses")

    def __init__(self, number, made_by):
        self.number = number  # in the order in which they are made
        self.bytes = 0
        self.made_by = made_by  # the op, or None: it was there before the file begins
        self.uses = {}  # op -> mode


class _Node:
    __slots__ = ("id", "parent", "name", "schema", "inputs", "outputs", "shapes", "out_shapes",
                 "children", "phase")

    def __init__(self, fields):
        self.id = fields.get("id", int, "the node's number")
        self.name = fields.get("name", str, "the op's name")
        parent = fields.value.get("ctrl_deps", fields.value.get("parent"))
        if not isinstance(parent, int):
            fields.get("ctrl_deps", int, "the number of the node around it")
        self.parent = parent
        self.schema = _attribute(fields.value, "op_schema")
        self.inputs, self.shapes = _values(fields, "inputs", "input_shapes")
        self.outputs, self.out_shapes = _values(fields, "outputs", "output_shapes")
        self.children = []
        self.phase = "forward"


def _attribute(node, name):
    for attribute in node.get("attrs") or ():
        if attribute.get("name") == name:
            return attribute.get("value") or ""
    return node.get(name) or ""


def _values(fields, key, shapes_key):
    """Values and shapes of a node, in the form of newer files or of older ones."""
    held = fields.get(key, (dict, list), "the tensors of the op")
    if isinstance(held, dict):
        return held.get("values") or [], held.get("shapes") or []
    return held, fields.value.get(shapes_key) or []


def _is_tensor(value):
    """[tensor, storage, offset, elements, bytes of one, device]; older files have no device."""
    return (isinstance(value, list) and len(value) >= 5
            and all(type(v) is int for v in value[:5])
            and (len(value) == 5 or isinstance(value[5], str)))


def _tensors(values):
    for value in values:
        if _is_tensor(value):
            if value[3] * value[4] > 0:
                yield value
        elif isinstance(value, list):
            yield from _tensors(value)


def _device_of(tensor):
    return tensor[5] if len(tensor) > 5 else ""


def _with_shapes(node):
    """Tensors of the inputs, each with its shape, or None where the file does not say."""
    for i, value in enumerate(node.inputs):
        shape = node.shapes[i] if i < len(node.shapes) else None
        for tensor in _tensors([value]):
            yield tensor, shape if _is_tensor(value) else None


class _Reader:
    """Walks the ops of a file in their order and finds its storages."""

    def __init__(self, device):
        self.device = device
        self.storages = []
        self.ops = []
        self._at = {}  # address -> storage
        self._seen = set()  # (tensor, address)
        self._stretched = set()

    def take(self, node):
        """An outermost op: it knows what it is given and what it has made itself, nothing else."""
        op = len(self.ops)
        self.ops.append(node)
        written = {t[1] for i in _written(node) for t in _tensors(node.inputs[i:i + 1])}
        given = [t for t, shape in _with_shapes(node) if self._is_here(t)
                 and (t[1] in written or not self._is_number(t, shape))]
        for tensor in given:
            self._use(self._at.get(tensor[1]) or self._make(tensor[1], None), op, READ, tensor)
        self._walk(node, op, {t[1] for t in given}, len(self.storages))

    def _walk(self, node, op, known, begun):
        """`known`: addresses that the outermost op was given; `begun`: storages there were then."""
        born = len(self.storages)
        inputs = list(_tensors(node.inputs))
        mine = {t[1] for t in inputs}
        if node is not self.ops[op]:
            for tensor in filter(self._is_here, inputs):
                self._use(self._inside(tensor[1], op, known, begun), op, READ, tensor)
        for child in node.children:
            self._walk(child, op, known, begun)
        for i in _written(node):
            for tensor in filter(self._is_here, _tensors(node.inputs[i:i + 1])):
                self._use(self._inside(tensor[1], op, known, begun), op, UPDATE, tensor)
        for tensor in filter(self._is_here, _tensors(node.outputs)):
            stretches = node.name.startswith(_STRETCHES)
            (self._stretched.add if stretches else self._stretched.discard)(tensor[0])
            storage = self._at.get(tensor[1])
            if tensor[1] not in mine and (storage is None or storage.number < born):
                storage = self._make(tensor[1], op)
            self._use(storage, op, READ, tensor)

    def _inside(self, address, op, known, begun):
        storage = self._at.get(address)
        if address in known or storage is not None and storage.number >= begun:
            return storage
        return self._make(address, op)

    def _is_here(self, tensor):
        return _device_of(tensor) == self.device

    def _is_number(self, tensor, shape):
        """Whether it is one of Python's that no op made: its address is that of something dead."""
        return (_device_of(tensor) == "cpu" and shape == [] and tensor[3] == 1
                and (tensor[0], tensor[1]) not in self._seen)

    def _make(self, address, op):
        storage = _Storage(len(self.storages), op)
        self.storages.append(storage)
        self._at[address] = storage
        return storage

    def _use(self, storage, op, mode, tensor):
        self._seen.add((tensor[0], tensor[1]))
        if storage.made_by == op:
            mode = WRITE
        if mode != READ or op not in storage.uses:
            storage.uses[op] = mode
        if tensor[0] not in self._stretched:
            storage.bytes = max(storage.bytes, (tensor[2] + tensor[3]) * tensor[4])


def _written(node):
    """Positions of the inputs that the op writes."""
    everything = range(len(node.inputs))
    if not node.schema:
        # Of one without a schema nothing is known; but a backward function makes new gradients.
        return () if node.children or _LOOKS.search(node.name) else everything
    arguments = _arguments(node.schema)
    marked = [i for i, a in enumerate(arguments) if "!" in a and i < len(node.inputs)]
    if not marked and not node.name.startswith(_OWN):
        return everything  # collectives do not mark what they write
    return marked + list(_HIDDEN_WRITES.get(node.name, ()))


def _arguments(schema):
    """The texts of a schema's arguments."""
    found, depth, start = [], 0, schema.find("(") + 1
    for i in range(start, len(schema)):
        letter = schema[i]
        if letter in "([":
            depth += 1
        elif letter in ")]" and depth > 0:
            depth -= 1
        elif letter == "," and depth == 0 or letter == ")":
            found.append(schema[start:i].strip())
            start = i + 1
            if letter == ")":
                break
    return [a for a in found if a and a != "*"]


def read_program(path, content, step):
    trace = Fields(path, content)
    nodes = [_Node(fields) for fields in trace.each("nodes", "a list of nodes")]
    nodes.sort(key=lambda n: n.id)
    by_id = {n.id: n for n in nodes}
    roots = []
    for node in nodes:
        parent = by_id.get(node.parent)
        (roots if parent is None or parent is node else parent.children).append(node)
    device = _device(path, nodes)
    reader = _Reader(device)
    for node in _outermost(roots):
        reader.take(node)
    steps = _steps(path, nodes)
    number = chosen_step(path, f"nodes '{_STEP}N'", list(steps), step, _default(steps))
    first, last = steps.get(number, (0, nodes[-1].id + 1))
    program = _Program(reader, first, last)
    if not program.writer.ops:
        raise BadTrace(f"{path}: step {number} has no op with tensors on {device}. Next: another "
                       "--step")
    return Found(program.writer, "what-if", number, list(steps), program.notes(device, number))


def _device(path, nodes):
    """Where most tensors are, the CPU only where there is nothing else."""
    count = collections.Counter(_device_of(t) for n in nodes for t in _tensors(n.inputs))
    if not count:
        raise BadTrace(f"{path}: no node of 'nodes' has tensors in its 'inputs'. Next: a trace of "
                       "torch.profiler.ExecutionTraceObserver")
    return max(count, key=lambda device: (device != "cpu", count[device]))


def _steps(path, nodes):
    """{number: (first node, first node of the next)}."""
    marks = [n for n in nodes if n.name.startswith(_STEP)]
    for mark in marks:
        if not mark.name[len(_STEP):].isdigit():
            raise BadTrace(f"{path}: a node has name {mark.name!r}; '{_STEP}N' belongs there")
    ends = [n.id for n in marks[1:]] + [nodes[-1].id + 1]
    return {int(m.name[len(_STEP):]): (m.id, end) for m, end in zip(marks, ends)}


def _default(steps):
    """The last one that another follows: what is used behind it is known."""
    numbers = list(steps)
    return numbers[-2] if len(numbers) > 1 else (numbers or [None])[0]


def _outermost(roots):
    """The outermost nodes that are ops, in the order in which they begin."""
    found, left = [], list(roots)
    while left:
        node = left.pop()
        node.phase = _PHASES.get(node.name.split("#")[0].split(":")[0], node.phase)
        if node.schema or not node.children:
            found.append(node)
        else:
            for child in node.children:
                child.phase = node.phase
            left.extend(node.children)
    return sorted(found, key=lambda n: n.id)


def _is_view(node, storages):
    """Whether an op only makes new views of what it was given."""
    outputs = list(_tensors(node.outputs))
    given = {t[1] for t in _tensors(node.inputs)}
    return bool(outputs) and all(t[1] in given for t in outputs) and all(
        mode == READ for mode in storages.values())


class _Program:
    """The ops of nodes `first` to `last`. What is there before them is the model's where it is used
    behind them, or where the file ends with them; else an op at the begin makes it."""

    def __init__(self, reader, first, last):
        self.writer = Writer()
        inside = [i for i, node in enumerate(reader.ops) if first <= node.id < last]
        self._ends = inside[-1] if inside else -1
        self._file_ends = self._ends == len(reader.ops) - 1
        self._tensors = {}
        self.carried = 0
        modes = {op: {} for op in inside}
        for storage in reader.storages:
            for op, mode in storage.uses.items():
                if op in modes and storage.bytes:
                    modes[op][storage] = mode
        used = [op for op in inside if modes[op] and not _is_view(reader.ops[op], modes[op])]
        for op in used:
            for storage in modes[op]:
                if storage.made_by not in modes:
                    self._find(storage)
        for op in used:
            self._add(op, reader.ops[op], modes[op])
        self._hold(reader.storages)

    def _used_behind(self, storage):
        return any(op > self._ends for op in storage.uses)

    def _find(self, storage):
        """A tensor that is there when the step begins."""
        if storage in self._tensors:
            return
        stays = self._file_ends or self._used_behind(storage)
        name = f"s{storage.number}.found"
        tensor = self.writer.tensor(name, storage.bytes, "weight" if stays else "input", stays)
        self._tensors[storage] = tensor
        if not stays:
            self.writer.op(f"feed.{name}", "feed", {tensor: WRITE}, random=True)

    def _add(self, op, node, modes):
        accesses = {}
        for storage, mode in modes.items():
            if storage not in self._tensors:
                self._tensors[storage] = self.writer.tensor(f"s{storage.number}.{node.name}",
                                                            storage.bytes)
            accesses[self._tensors[storage]] = mode
        flops = _flops(node)
        traffic = cost.traffic_of(self.writer, accesses)
        self.writer.op(f"{op}.{node.name}", node.name, accesses, cost.time_ns(flops, traffic),
                       again=bool(node.schema) and node.name.startswith(_OWN),
                       random=_draws(node), phase=node.phase, flops=flops, traffic=traffic,
                       source=cost.SOURCE)

    def _hold(self, storages):
        """What is made in the step and used behind it stays until its end."""
        for storage in storages:
            tensor = self._tensors.get(storage)
            if tensor is not None and not self.writer.tensors[tensor]["persistent"] \
                    and self._used_behind(storage):
                self.writer.hold(tensor, len(self.writer.ops) - 1)
                self.carried += storage.bytes

    def notes(self, device, number):
        found = sum(t["bytes"] for t in self.writer.tensors if t["persistent"])
        notes = [f"{device}: {in_words(found)} are there before the step and stay",
                 "the file has no frees: bytes are taken until their last access, so PyTorch's own "
                 "peak may be higher",
                 f"the file has no times: they are of the compute model of {cost.MACHINE}, with the "
                 "floating-point operations of matrix products and convolutions alone"]
        if self.carried:
            notes.append(f"{in_words(self.carried)} are made in the step and used in the next: they "
                         "stay until its end")
        if number is None:
            notes.append(f"there is no node '{_STEP}N': all of the file is one step")
        return notes


def _flops(node):
    shapes = [s if isinstance(s, list) and all(type(n) is int for n in s) else []
              for s in node.shapes]
    output = node.out_shapes[0] if node.out_shapes else []
    if not all(type(n) is int for n in output):
        output = []
    return cost.flops_of(node.name, shapes, output) or sum(map(_flops, node.children))


def _draws(node):
    return cost.draws(node.name) or any(map(_draws, node.children))
