"""Makes a training iteration of a network that is given by layers, as program JSON."""

import dataclasses


@dataclasses.dataclass
class Layer:
    """One forward op. Times are nanoseconds, of the whole batch."""

    name: str
    kind: str
    inputs: list  # names of layers
    out_bytes: int
    forward_ns: int
    backward_ns: int = 0
    weight_bytes: int = 0
    in_place: bool = False  # its output takes the place of its input
    reads_inputs: bool = True  # in backward
    reads_output: bool = False  # in backward
    update_ns: int = 10_000


class ProgramWriter:
    def __init__(self, name, batch=1):
        self.program = {"name": name, "batch": batch, "sub_batch": batch, "layers": [],
                        "tensors": [], "ops": []}
        self.names = set()

    def tensor(self, name, size, kind="activation", persistent=False):
        self.program["tensors"].append(
            {"name": name, "bytes": max(int(size), 1), "kind": kind, "persistent": persistent})
        return len(self.program["tensors"]) - 1

    def op(self, name, kind, accesses, time_ns, phase="other", layer=None, place="device"):
        """`accesses`: (tensor, mode) pairs; of a tensor named twice the strongest mode counts."""
        modes = {}
        for tensor, mode in accesses:
            if modes.get(tensor, "read") == "read":
                modes[tensor] = mode
        persistent = any(mode != "read" and self.program["tensors"][t]["persistent"]
                         for t, mode in modes.items())
        op = {"name": self._unique(name), "kind": kind, "place": place, "round": 0,
              "recomputable": place == "device" and not persistent, "random": place == "host",
              "flops": 0.0, "traffic": 0,
              "accesses": [{"tensor": t, "mode": m} for t, m in modes.items()],
              "algorithms": [{"name": "recorded", "time_ns": int(time_ns), "workspace": 0,
                              "deterministic": True}],
              "phase": phase}
        if layer is not None:
            op["layer"] = layer
        self.program["ops"].append(op)

    def _unique(self, name):
        unique, n = name, 1
        while unique in self.names:
            n += 1
            unique = f"{name}#{n}"
        self.names.add(unique)
        return unique


def topological(layers):
    """`layers` so that inputs come first, otherwise in their order."""
    by_name = {layer.name: layer for layer in layers}
    done, order = set(), []
    for layer in layers:
        stack = [layer]
        while stack:
            top = stack[-1]
            missing = [i for i in top.inputs if i not in done]
            if top.name in done:
                stack.pop()
            elif missing:
                stack.extend(by_name[i] for i in reversed(missing))
            else:
                done.add(top.name)
                order.append(stack.pop())
    return order


class Training:
    """Forward, backward and updates of layers in topological order. A gradient with several
    readers is written by the first of their backward ops and updated by the others."""

    def __init__(self, name, batch, layers):
        self.layers = layers
        self.by_name = {layer.name: layer for layer in layers}
        self.writer = ProgramWriter(name, batch)
        self.readers = {layer.name: 0 for layer in layers}
        for layer in layers:
            for i in layer.inputs:
                self.readers[i] += 1
        self.values, self.weights, self.gradients = {}, {}, {}

    def program(self):
        for i, layer in enumerate(self.layers):
            self.writer.program["layers"].append(layer.name)
            self.forward(i, layer)
        for i, layer in reversed(list(enumerate(self.layers))):
            if layer.inputs:
                self.backward(i, layer)
        used = {a["tensor"] for op in self.writer.program["ops"] for a in op["accesses"]}
        assert used == set(range(len(self.writer.program["tensors"])))
        return self.writer.program

    def forward(self, i, layer):
        w = self.writer
        if not layer.inputs:
            self.values[layer.name] = w.tensor(layer.name, layer.out_bytes, "input")
            w.op(layer.name, "input", [(self.values[layer.name], "write")], 0, "other", i, "host")
            return
        accesses = [(self.values[n], "read") for n in layer.inputs]
        source = layer.inputs[0]
        if layer.in_place and self.readers[source] == 1:
            self.values[layer.name] = self.values[source]
            accesses = [(self.values[source], "update")]
        else:
            self.values[layer.name] = w.tensor(layer.name, layer.out_bytes)
            accesses.append((self.values[layer.name], "write"))
        if layer.weight_bytes > 0:
            weight = w.tensor(layer.name + ".weight", layer.weight_bytes, "weight", True)
            self.weights[layer.name] = weight
            accesses.append((weight, "read"))
        w.op(layer.name, layer.kind, accesses, layer.forward_ns, "forward", i)

    def backward(self, i, layer):
        w = self.writer
        accesses = []
        if layer.name in self.gradients:  # otherwise the end of the network: a loss
            accesses.append((self.gradients[layer.name], "read"))
        if layer.reads_output or layer.name not in self.gradients:
            accesses.append((self.values[layer.name], "read"))
        for n in layer.inputs:
            if layer.reads_inputs:
                accesses.append((self.values[n], "read"))
            source = self.by_name[n]
            if not source.inputs:
                continue
            if n in self.gradients:
                accesses.append((self.gradients[n], "update"))
            else:
                self.gradients[n] = w.tensor("d" + n, source.out_bytes, "gradient")
                accesses.append((self.gradients[n], "write"))
        if layer.name in self.weights:
            weight = self.weights[layer.name]
            gradient = w.tensor("d" + layer.name + ".weight", layer.weight_bytes, "gradient")
            accesses += [(weight, "read"), (gradient, "write")]
        w.op(layer.name + ".backward", layer.kind + "_backward", accesses, layer.backward_ns,
             "backward", i)
        if layer.name in self.weights:
            w.op(layer.name + ".update", "sgd", [(gradient, "read"), (weight, "update")],
                 layer.update_ns, "update", i)
