"""PipeDream's profiles, *.graph.txt: a layer a line with its times (ms) and bytes, then edges.

Times of forward and backward are the file's; updates of weights have none in it and get those of
the compute model."""

import re

from networks import compute_model
from networks.training import Layer, Training, topological

NODE = re.compile(r"^(\S+) -- (.*) -- forward_compute_time=([\d.]+), backward_compute_time=([\d.]+), "
                  r"activation_size=([\d.]+), parameter_size=([\d.]+)$")
EDGE = re.compile(r"^\t(\S+) -- (\S+)$")


def make_layer(match):
    name, text, forward, backward, activation, parameters = match.groups()
    kind = text.split("(")[0]
    weight = int(float(parameters))
    relu = kind == "ReLU"
    return Layer(name, kind.lower(), [], int(float(activation)), round(float(forward) * 1e6),
                 round(float(backward) * 1e6), weight, "inplace" in text,
                 reads_inputs=not relu and kind not in ("Add", "Concat"),
                 reads_output=relu or kind in ("MaxPool2d",),
                 update_ns=compute_model.time_ns(0, 3 * weight))


def program(path, name, batch):
    layers, edges = {}, []
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if match := NODE.match(line):
                layers[match.group(1)] = make_layer(match)
            elif match := EDGE.match(line):
                edges.append(match.groups())
            elif line.strip():
                raise ValueError(f"{path}: neither a layer nor an edge: {line!r}")
    for source, target in edges:
        layers[target].inputs.append(source)
    order = sorted(layers.values(), key=lambda layer: int(re.sub(r"\D", "", layer.name)))
    return Training(name, batch, topological(order)).program()
