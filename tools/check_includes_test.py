#!/usr/bin/env python3
"""Tests of check_includes.py: one line of source each, and what the tool says about it."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import check_includes  # noqa: E402

HEADERS = [
    "base/bytes.h", "ir/program.h", "cost/machine.h", "schedule/schedule.h", "planners/none.h",
    "sim/simulate.h", "device/device.h", "device/cpu/cpu_device.h",
    "runtime/executor.h", "runtime/op_runner.h", "nn/graph.h", "nn/kernels/cpu/cpu.h",
    "lower/lower.h", "lower/timing/time_pass.h",
]

ALLOWED = [
    ("ir/a.cpp", '"base/bytes.h"'),
    ("lower/a.cpp", '"base/bytes.h"'),
    ("lower/a.cpp", '"lower/timing/time_pass.h"'),
    ("lower/placing/a.cpp", '"lower/timing/time_pass.h"'),
    ("planners/a.cpp", '"lower/lower.h"'),
    ("planners/a.cpp", '"cost/machine.h"'),
    ("runtime/a.cpp", '"device/device.h"'),
    ("nn/a.cpp", '"runtime/op_runner.h"'),
    ("nn/kernels/cpu/a.cpp", "<dnnl.hpp>"),
    ("nn/kernels/cpu/a.cpp", '"device/cpu/cpu_device.h"'),
    ("device/cpu/a.cpp", "<omp.h>"),
    ("device/cuda/a.cu", "<cuda_runtime.h>"),
    ("planners/a.cpp", "<Eigen/Cholesky>"),
    ("planners/published/dqn/torch/module/a.cpp", "<ATen/ATen.h>"),
    ("base/a.cpp", "<vector>"),
    ("base/a.cpp", "<sys/mman.h>"),
]

REFUSED = [
    ("base/a.cpp", '"ir/program.h"'),
    ("ir/a.cpp", '"cost/machine.h"'),
    ("planners/a.cpp", '"device/device.h"'),
    ("planners/a.cpp", '"lower/timing/time_pass.h"'),
    ("planners/a.cpp", '"sim/simulate.h"'),
    ("sim/a.cpp", '"runtime/op_runner.h"'),
    ("runtime/a.cpp", '"sim/simulate.h"'),
    ("runtime/a.cpp", '"nn/graph.h"'),
    ("runtime/a.cpp", '"device/cpu/cpu_device.h"'),
    ("device/a.cpp", '"ir/program.h"'),
    ("nn/a.cpp", '"runtime/executor.h"'),
    ("nn/a.cpp", '"schedule/schedule.h"'),
    ("nn/a.cpp", '"nn/kernels/cpu/cpu.h"'),
    ("nn/a.cpp", "<omp.h>"),
    ("runtime/a.cpp", "<dnnl.hpp>"),
    ("lower/a.cpp", "<Eigen/Cholesky>"),
    ("lower/a.cpp", "<oneapi/dnnl/dnnl.hpp>"),
    ("planners/published/dqn/torch/a.cpp", "<torch/torch.h>"),
    ("nn/kernels/cpu/a.cpp", "<ATen/ATen.h>"),
    ("ir/a.cpp", "<base/bytes.h>"),
    ("ir/a.cpp", '"bytes.h"'),
]


class CheckIncludes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.src = Path(folder.name)
        for header in HEADERS:
            path = self.src / header
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def violations(self, path, include):
        file = self.src / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"// first line\n#include {include}\n", encoding="utf-8")
        return list(check_includes.check_file(file, self.src))

    def test_allows(self):
        for path, include in ALLOWED:
            with self.subTest(path=path, include=include):
                self.assertEqual(self.violations(path, include), [])

    def test_refuses(self):
        for path, include in REFUSED:
            with self.subTest(path=path, include=include):
                found = self.violations(path, include)
                self.assertEqual([line for line, _ in found], [2])

    def test_programs_include_src_and_of_each_other_what_they_share(self):
        self.src = self.src / "src"
        for path in ["src/base/bytes.h", "src/device/cpu/guarded_memory.h", "src/lower/placing/order.h",
                     "cli/context.h", "cli/plan_report.h", "reproduce/table_report.h"]:
            header = self.src.parent / path
            header.parent.mkdir(parents=True, exist_ok=True)
            header.touch()
        for program, include, errors in [
                ("reproduce", '"cli/context.h"', 0), ("reproduce", '"table_report.h"', 0),
                ("reproduce", '"base/bytes.h"', 0), ("reproduce", '"cli/plan_report.h"', 1),
                ("reproduce", '"../cli/plan_report.h"', 1), ("reproduce", '"device/cpu/guarded_memory.h"', 1),
                ("cli", '"context.h"', 0), ("cli", '"reproduce/table_report.h"', 1),
                ("cli", '"../reproduce/table_report.h"', 1), ("cli", "<dnnl.hpp>", 1),
                ("cli", '"lower/placing/order.h"', 1)]:
            with self.subTest(program=program, include=include):
                folder = (self.src.parent / program).resolve()
                file = folder / "a.cpp"
                file.write_text(f"// first line\n#include {include}\n", encoding="utf-8")
                self.assertEqual(len(list(check_includes.check_file(file, folder))), errors)

    def test_refuses_a_folder_it_does_not_know(self):
        self.assertEqual(len(self.violations("other/a.cpp", "<vector>")), 1)


if __name__ == "__main__":
    unittest.main()
