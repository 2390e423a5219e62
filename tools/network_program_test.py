#!/usr/bin/env python3
"""Tests of network_program.py and its readers, on small files made here."""

import os
import tempfile
import unittest

from network_program import make_program
from networks import onnx_wire

GRAPH = """\
node1 -- Input -- forward_compute_time=1.000, backward_compute_time=0.000, activation_size=4096.000, parameter_size=0.000
node3 -- ReLU(inplace) -- forward_compute_time=0.100, backward_compute_time=0.200, activation_size=8192.000, parameter_size=0.000
node2 -- Conv2d(3, 6) -- forward_compute_time=2.000, backward_compute_time=3.500, activation_size=8192.000, parameter_size=512.000
node4 -- Linear(1, 1) -- forward_compute_time=1.500, backward_compute_time=2.500, activation_size=64.000, parameter_size=256.000
node5 -- Add(inplace) -- forward_compute_time=0.500, backward_compute_time=0.500, activation_size=64.000, parameter_size=0.000
node6 -- Linear(1, 1) -- forward_compute_time=1.500, backward_compute_time=2.500, activation_size=64.000, parameter_size=256.000
\tnode1 -- node2
\tnode2 -- node3
\tnode3 -- node4
\tnode3 -- node6
\tnode4 -- node5
\tnode6 -- node5
"""

LOG = """\
{"ANNOTATION":"START","INSTRUCTION":"ANNOTATE"}
{"INSTRUCTION":"CONSTANT","NAME":"w"}
{"INSTRUCTION":"MEMORY","MEMORY":"1024","NAME":"w"}
{"ARGS":["w"],"INSTRUCTION":"CALL","NAME":"t","RESULT":["v"],"TIME":"10"}
{"INSTRUCTION":"MEMORY","MEMORY":"1024","NAME":"v"}
{"ALIAS":"0","INSTRUCTION":"ALIAS","NAME":"v"}
{"ARGS":["w","v"],"INSTRUCTION":"CALL","NAME":"mm","RESULT":["y"],"TIME":"700"}
{"INSTRUCTION":"MEMORY","MEMORY":"2048","NAME":"y"}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"y"}
{"DST":"z","INSTRUCTION":"COPY","SRC":"y"}
{"INSTRUCTION":"RELEASE","NAME":"y"}
{"ANNOTATION":"BACKWARD","INSTRUCTION":"ANNOTATE"}
{"ARGS":["z","v"],"INSTRUCTION":"MUTATE","MUTATE":[0],"NAME":"add_","TIME":"300"}
"""


def written(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def accesses(program, op):
    names = [t["name"] for t in program["tensors"]]
    return {names[a["tensor"]]: a["mode"] for a in op["accesses"]}


def op_named(program, name):
    return next(op for op in program["ops"] if op["name"] == name)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def program(self, files, batch=4):
        paths = [written(self.folder.name, name, text) for name, text in files.items()]
        return make_program(paths[0], batch)

    def check_valid(self, program):
        """What is not persistent is written before it is read, and every tensor is accessed."""
        written_yet = {i for i, t in enumerate(program["tensors"]) if t["persistent"]}
        for op in program["ops"]:
            for a in op["accesses"]:
                self.assertTrue(a["mode"] == "write" or a["tensor"] in written_yet, op["name"])
                written_yet.add(a["tensor"])
        self.assertEqual(written_yet, set(range(len(program["tensors"]))))
        self.assertEqual(len({op["name"] for op in program["ops"]}), len(program["ops"]))


class LayerGraph(Case):
    def test_layers_become_forward_backward_and_update_ops_with_the_files_times(self):
        program = self.program({"net.graph.txt": GRAPH})
        self.check_valid(program)
        self.assertEqual([op["name"] for op in program["ops"][:6]],
                         ["node1", "node2", "node3", "node4", "node6", "node5"])
        self.assertEqual(op_named(program, "node2")["algorithms"][0]["time_ns"], 2_000_000)
        self.assertEqual(op_named(program, "node2.backward")["algorithms"][0]["time_ns"], 3_500_000)
        self.assertEqual(accesses(program, op_named(program, "node2.update")),
                         {"dnode2.weight": "read", "node2.weight": "update"})

    def test_in_place_layers_update_and_gradients_of_several_readers_add_up(self):
        program = self.program({"net.graph.txt": GRAPH})
        self.assertEqual(accesses(program, op_named(program, "node3")), {"node2": "update"})
        self.assertEqual(accesses(program, op_named(program, "node6.backward"))["dnode3"], "write")
        self.assertEqual(accesses(program, op_named(program, "node4.backward"))["dnode3"], "update")

    def test_what_is_no_layer_is_named(self):
        with self.assertRaisesRegex(ValueError, "neither"):
            self.program({"net.graph.txt": "node1 -- what\n"})


class LayerTables(Case):
    FILES = {
        "net.layers.csv": "layer,weight_bytes,buffer_bytes,optstate_bytes,update_gpu_s\n"
                          "0,512,0,512,0.0\n1,0,0,0,0.0\n",
        "net.outputs.csv": "microbatch,layer,name,bytes,shape\n1,0,input0,100,x\n1,1,out0,200,x\n"
                           "5,0,input0,500,x\n5,1,out0,1000,x\n",
        "net.times.csv": "microbatch,layer,fwd_gpu_s,bwd_gpu_s,fwd_mem_bytes,bwd_mem_bytes\n"
                         "4,0,0.001,0.003,0,0\n4,1,0.002,0.005,0,0\n"}

    def test_backward_is_without_its_forward_and_outputs_are_of_the_batch(self):
        program = self.program(self.FILES)
        self.check_valid(program)
        self.assertEqual(op_named(program, "layer1.backward")["algorithms"][0]["time_ns"], 3_000_000)
        sizes = {t["name"]: t["bytes"] for t in program["tensors"]}
        self.assertEqual((sizes["input"], sizes["layer0"]), (400, 800))


class DtrLog(Case):
    def test_views_are_their_storage_and_the_step_changes_what_it_found(self):
        program = self.program({"net.log": LOG})
        self.check_valid(program)
        self.assertEqual([op["name"] for op in program["ops"]], ["mm", "add_", "step"])
        self.assertEqual(list(accesses(program, program["ops"][0]).values()), ["read", "write"])
        self.assertEqual(list(accesses(program, program["ops"][1]).values()), ["update", "read"])
        self.assertEqual([op["phase"] for op in program["ops"]], ["forward", "backward", "update"])
        self.assertEqual([t["bytes"] for t in program["tensors"]], [1024, 2048])


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    """A protobuf field: an int, or text or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def onnx_node(kind, inputs, output, **attributes):
    node = b"".join(field(1, i) for i in inputs) + field(2, output) + field(4, kind)
    for name, value in attributes.items():
        ints = b"".join(field(8, v) for v in value)
        node += field(5, field(1, name) + ints)
    return field(1, node)


def onnx_input(name, shape):
    dims = b"".join(field(1, field(1, d)) for d in shape)
    return field(11, field(1, name) + field(2, field(1, field(1, 1) + field(2, dims))))


def onnx_shape(name, shape):
    return field(5, field(1, len(shape)) + field(2, 7) + field(8, name) +
                 field(7, b"".join(map(varint, shape))))


class Onnx(Case):
    MODEL = field(7, onnx_input("data", [1, 3, 8, 8]) + onnx_shape("w_shape", [6, 3, 3, 3]) +
                  onnx_node("ConstantOfShape", ["w_shape"], "w") +
                  onnx_node("Conv", ["data", "w"], "conv", pads=[1, 1, 1, 1], strides=[2, 2]) +
                  onnx_node("Relu", ["conv"], "relu") +
                  onnx_node("MaxPool", ["relu"], "pool", kernel_shape=[2, 2], strides=[2, 2]))

    def test_shapes_follow_and_parameters_are_what_constant_of_shape_makes(self):
        program = self.program({"net.onnx": self.MODEL})
        self.check_valid(program)
        sizes = {t["name"]: t["bytes"] for t in program["tensors"]}
        self.assertEqual(sizes["data"], 4 * 4 * 3 * 8 * 8)
        self.assertEqual(sizes["conv"], 4 * 4 * 6 * 4 * 4)
        self.assertEqual(sizes["pool"], 4 * 4 * 6 * 2 * 2)
        self.assertEqual(sizes["conv.weight"], 4 * 6 * 3 * 3 * 3)
        self.assertEqual(accesses(program, op_named(program, "relu")), {"conv": "update"})
        self.assertNotIn("ddata", sizes)

    def test_a_file_that_ends_early_is_refused(self):
        with self.assertRaises((ValueError, IndexError)):
            onnx_wire.read_graph(self.MODEL[:-3])


class Command(unittest.TestCase):
    def test_an_unknown_kind_of_file_is_refused(self):
        with self.assertRaisesRegex(ValueError, "expected one of"):
            make_program("net.txt", 1)


if __name__ == "__main__":
    unittest.main()
