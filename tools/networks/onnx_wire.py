"""Reads what is needed of an ONNX file: nodes, attributes, shapes. No package: the protobuf wire
format is a list of (field, value)."""

import dataclasses


def fields(data):
    """(field number, value): an int, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        wire = key & 7
        if wire == 0:
            value = varint()
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at:at + size], at + size
        elif wire == 2:
            size = varint()
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {wire}")
        if at > len(data):
            raise ValueError("the file ends inside a field")
        yield key >> 3, value


def integers(value):
    """A repeated integer field: one value, or packed ones."""
    if isinstance(value, int):
        return [value]
    result, number, shift = [], 0, 0
    for byte in value:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            result.append(number - (1 << 64) if number >> 63 else number)
            number = shift = 0
    return result


@dataclasses.dataclass
class Node:
    kind: str = ""
    inputs: list = dataclasses.field(default_factory=list)
    outputs: list = dataclasses.field(default_factory=list)
    attributes: dict = dataclasses.field(default_factory=dict)  # integers, lists of them, bytes


@dataclasses.dataclass
class Graph:
    nodes: list = dataclasses.field(default_factory=list)
    inputs: dict = dataclasses.field(default_factory=dict)  # name -> shape
    constants: dict = dataclasses.field(default_factory=dict)  # name -> (shape, integers or None)


def tensor(data):
    name, shape, values, raw, data_type = "", [], [], b"", 0
    for field, value in fields(data):
        if field == 1:
            shape += integers(value)
        elif field == 2:
            data_type = value
        elif field == 7:
            values += integers(value)
        elif field == 8:
            name = value.decode()
        elif field == 9:
            raw = value
    if raw and data_type == 7:
        values = [int.from_bytes(raw[i:i + 8], "little", signed=True)
                  for i in range(0, len(raw), 8)]
    return name, shape, values if data_type == 7 else None


def attribute(data):
    name, result, many = "", None, []
    for field, value in fields(data):
        if field == 1:
            name = value.decode()
        elif field == 3:
            result = value - (1 << 64) if value >> 63 else value
        elif field in (4, 5):
            result = value
        elif field == 8:
            many += integers(value)
    return name, many or result


def node(data):
    result = Node()
    for field, value in fields(data):
        if field == 1:
            result.inputs.append(value.decode())
        elif field == 2:
            result.outputs.append(value.decode())
        elif field == 4:
            result.kind = value.decode()
        elif field == 5:
            name, attribute_value = attribute(value)
            result.attributes[name] = attribute_value
    return result


def shape_of(type_proto):
    tensor_type = dict(fields(type_proto)).get(1, b"")
    shape = dict(fields(tensor_type)).get(2, b"")
    return [dict(fields(dim)).get(1, 1) for field, dim in fields(shape) if field == 1]


def read_graph(data):
    graph = Graph()
    for field, value in fields(dict(fields(data))[7]):
        if field == 1:
            graph.nodes.append(node(value))
        elif field == 5:
            name, shape, values = tensor(value)
            graph.constants[name] = (shape, values)
        elif field == 11:
            info = dict(fields(value))
            graph.inputs[info[1].decode()] = shape_of(info.get(2, b""))
    return graph
