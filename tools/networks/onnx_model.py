"""ONNX networks for inference, trained: one forward and one backward op a node.

The files have no times: those of the preset gtx1080ti's compute model, a backward op with twice the
forward op's work where it has weights. What ConstantOfShape makes counts as a parameter."""

import math

from networks import compute_model, onnx_wire
from networks.training import Layer, Training

FLOAT = 4
ELEMENTWISE = ("Relu", "LRN", "BatchNormalization", "Dropout", "Softmax", "Sum", "Add", "Mul")


def window(size, kernel, stride, pads, dilation=1):
    return (size + pads - dilation * (kernel - 1) - 1) // stride + 1


class Shapes:
    """Shapes of all values, batch size included, and the parameters."""

    def __init__(self, graph, batch):
        self.constants = dict(graph.constants)
        self.shapes = {n: s for n, (s, _) in graph.constants.items()}
        self.batch = batch
        for name, shape in graph.inputs.items():
            if name not in self.constants:
                self.shapes[name] = [batch] + shape[1:]
        self.parameters = set()

    def spatial(self, node, channels):
        n, _, *sizes = self.shapes[node.inputs[0]]
        get = node.attributes.get
        kernel = get("kernel_shape") or self.shapes[node.inputs[1]][2:]
        strides = get("strides") or [1] * len(sizes)
        pads = get("pads") or [0] * 2 * len(sizes)
        return [n, channels] + [window(s, k, t, pads[i] + pads[i + len(sizes)])
                                for i, (s, k, t) in enumerate(zip(sizes, kernel, strides))]

    def out(self, node):
        first = self.shapes[node.inputs[0]]
        if node.kind == "Conv":
            return self.spatial(node, self.shapes[node.inputs[1]][0])
        if node.kind in ("MaxPool", "AveragePool"):
            return self.spatial(node, first[1])
        if node.kind == "GlobalAveragePool":
            return first[:2] + [1] * (len(first) - 2)
        if node.kind == "Gemm":
            weight = self.shapes[node.inputs[1]]
            return [first[0], weight[0] if node.attributes.get("transB") else weight[1]]
        if node.kind == "Concat":
            axis = node.attributes.get("axis", 1)
            shape = list(first)
            shape[axis] = sum(self.shapes[i][axis] for i in node.inputs)
            return shape
        if node.kind in ("Reshape", "Flatten"):
            return [first[0], math.prod(first[1:])]
        if node.kind in ELEMENTWISE:
            return first
        raise ValueError(f"op {node.kind} is not known here")


def flops(node, shapes, out):
    if node.kind == "Conv":
        return 2 * math.prod(out) * math.prod(shapes[node.inputs[1]][1:])
    if node.kind == "Gemm":
        return 2 * math.prod(out) * shapes[node.inputs[0]][1]
    return 0


def make_layer(node, known, views):
    shapes = known.shapes
    out = shapes[node.outputs[0]] = known.out(node)
    data = [i for i in node.inputs if i not in known.parameters and i not in known.constants]
    weights = sum(math.prod(shapes[i]) for i in node.inputs if i in known.parameters)
    work = flops(node, shapes, out)
    traffic = FLOAT * (math.prod(out) + sum(math.prod(shapes[i]) for i in data) + weights)
    backward = compute_model.time_ns(2 * work if work else 0, 2 * traffic)
    return Layer(node.outputs[0], node.kind.lower(), [views.get(i, i) for i in data],
                 FLOAT * math.prod(out), compute_model.time_ns(work, traffic), backward,
                 FLOAT * weights, node.kind == "Relu",
                 reads_inputs=node.kind not in ("Relu", "Sum", "Add", "Concat", "Softmax"),
                 reads_output=node.kind in ("Relu", "Softmax", "MaxPool", "LRN"),
                 update_ns=compute_model.time_ns(0, FLOAT * 3 * weights))


def program(path, name, batch):
    with open(path, "rb") as file:
        graph = onnx_wire.read_graph(file.read())
    known = Shapes(graph, batch)
    produced = {o for node in graph.nodes for o in node.outputs}
    for node in graph.nodes:
        if node.kind == "ConstantOfShape":
            known.shapes[node.outputs[0]] = known.constants[node.inputs[0]][1]
            known.parameters.add(node.outputs[0])
    layers = [Layer(n, "input", [], FLOAT * math.prod(s), 0) for n, s in known.shapes.items()
              if n in graph.inputs and n not in known.constants and n not in produced]
    views = {}
    for node in graph.nodes:
        if node.kind == "ConstantOfShape":
            continue
        if node.kind in ("Reshape", "Flatten", "Dropout"):  # no work, or none to speak of
            known.shapes[node.outputs[0]] = known.out(node)
            if node.inputs[0] in known.parameters:
                known.parameters.add(node.outputs[0])
            views[node.outputs[0]] = views.get(node.inputs[0], node.inputs[0])
            continue
        layers.append(make_layer(node, known, views))
    return Training(name, batch, layers).program()
