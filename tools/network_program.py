#!/usr/bin/env python3
"""Makes a program file of a network that another system has described or measured:

  tools/network_program.py ../shared/data/onnx/light_vgg19.onnx --batch 64 -o vgg19.program.json
  tidepool plan --program vgg19.program.json --machine gtx1080ti --budget 60%

FILE is a PipeDream profile (.graph.txt), one of Harmony's tables (NAME.layers.csv, with its other
two beside it), an ONNX network (.onnx), or a DTR log (.log, .log.gz). tools/networks says where
the times come from."""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from networks import dtr_log, layer_graph, layer_tables, onnx_model  # noqa: E402

READERS = {".graph.txt": layer_graph, ".layers.csv": layer_tables, ".onnx": onnx_model,
           ".log": dtr_log, ".log.gz": dtr_log}


def make_program(path, batch):
    for suffix, reader in READERS.items():
        if path.endswith(suffix):
            name = os.path.basename(path)[:-len(suffix)]
            source = path[:-len(suffix)] if reader is layer_tables else path
            return reader.program(source, name, batch)
    raise ValueError(f"{path}: expected one of {', '.join(READERS)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--batch", type=int, default=64,
                        help="samples; of tables a micro-batch they have; a profile's and a log's "
                        "own counts whatever is said here")
    parser.add_argument("-o", "--output", required=True)
    arguments = parser.parse_args()
    program = make_program(arguments.file, arguments.batch)
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump(program, file, separators=(",", ":"))
    print(f"{arguments.output}: {len(program['ops'])} ops, {len(program['tensors'])} tensors")


if __name__ == "__main__":
    main()
