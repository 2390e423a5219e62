"""Harmony's tables of a chain of layers: NAME.layers.csv, NAME.outputs.csv, NAME.times.csv.

Times of forward and backward are the file's at one micro-batch; its backward includes another
forward, which is taken off. Updates get the compute model's times."""

import csv

from networks import compute_model
from networks.training import Layer, Training


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def at_batch(table, batch):
    found = {}
    for row in table:
        if int(row["microbatch"]) == batch:
            found.setdefault(int(row["layer"]), row)
    return found


def output_bytes(table, batch):
    """Outputs are listed at some batches only, and are proportional."""
    known = max(int(row["microbatch"]) for row in table)
    sums = {}
    for row in table:
        if int(row["microbatch"]) == known:
            layer = int(row["layer"])
            sums[layer] = sums.get(layer, 0) + int(row["bytes"]) * batch // known
    return sums


def program(prefix, name, batch):
    layers = rows(prefix + ".layers.csv")
    times = at_batch(rows(prefix + ".times.csv"), batch)
    outputs = output_bytes(rows(prefix + ".outputs.csv"), batch)
    first = outputs[0]
    chain = [Layer("input", "input", [], first, 0)]
    for row in layers:
        i = int(row["layer"])
        forward = float(times[i]["fwd_gpu_s"]) * 1e9
        backward = max(float(times[i]["bwd_gpu_s"]) * 1e9 - forward, 0)
        weight = int(row["weight_bytes"])
        # outN is what layer N hands to the next: the row of layer N + 1. The last hands on a scalar.
        chain.append(Layer(f"layer{i}", "layer", [chain[-1].name], outputs.get(i + 1, 4),
                           round(forward), round(backward), weight, reads_output=False,
                           update_ns=compute_model.time_ns(0, 3 * weight)))
    return Training(name, batch, chain).program()
