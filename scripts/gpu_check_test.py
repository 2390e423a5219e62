#!/usr/bin/env python3
"""Tests of gpu_check.sh, in a bundle of shell scripts that stand in for the programs."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent

GPU = "devices that run here:\n  cuda       NVIDIA GPU (cuda; Test GPU, sm_90)\npresets\n"
NO_GPU = ("devices that run here:\ndevices of this build that cannot be used:\n"
          "  cuda       no NVIDIA driver: libcuda.so.1: cannot open\npresets\n")
OLD_DRIVER = ("devices that run here:\ndevices of this build that cannot be used:\n"
              "  cuda       the driver is too old: it is for CUDA 12.4, this build needs 13.0\n")
NO_CUBLAS = ("devices that run here:\ndevices of this build that cannot be used:\n"
             "  cuda       libcublas.so.12: cannot open shared object file\npresets\n")

PASSED = "[ RUN      ] A.Runs\n[       OK ] A.Runs (0 ms)\n[  PASSED  ] 1 test.\n"
SKIPPED = ("[ RUN      ] A.Runs\n[       OK ] A.Runs (0 ms)\n"
           "[ RUN      ] On.Gpu/3\nfile.h:18: Skipped\nno GPU is used\n"
           "[  SKIPPED ] On.Gpu/3 (0 ms)\n[  PASSED  ] 1 test.\n"
           "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] On.Gpu/3\n")


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.bundle = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.bundle)
        for script in ("gpu_check.sh", "gpu_environment.sh"):
            shutil.copy(SCRIPTS / script, self.bundle)
        (self.bundle / "VERSION").write_text("commit test\n")
        self.program("path/nvidia-smi", code=1)
        self.programs("bin", GPU)

    def program(self, name, output="", code=0, also=""):
        """A program that prints, and writes its arguments into a file beside it."""
        file = self.bundle / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#!/bin/sh\necho "$@" >> "$0.calls"\ncat << "END"\n{output}END\n'
                        f"{also}\nexit {code}\n")
        file.chmod(0o755)

    def programs(self, folder, machines, device=PASSED, kernels=PASSED):
        self.program(f"{folder}/tidepool", machines)
        self.program(f"{folder}/device_cuda_test", device)
        self.program(f"{folder}/nn_cuda_test", kernels)
        # Called with --minutes M --output FOLDER.
        self.program(f"{folder}/bench_cuda", also='echo "# Measured" > "$4/cuda.md"; echo {} > "$4/cuda.json"')

    def two_builds(self, newer, older):
        self.programs("cuda13", newer)
        self.programs("cuda12", older)
        for program in ("tidepool", "device_cuda_test", "nn_cuda_test", "bench_cuda"):
            shutil.copy(SCRIPTS / "gpu_program.sh", self.bundle / "bin" / program)

    def check(self, *arguments, **environment):
        kept = {"HOME": os.environ.get("HOME", "/"),
                "PATH": f"{self.bundle / 'path'}:{os.environ['PATH']}"}
        done = subprocess.run([self.bundle / "gpu_check.sh", *arguments], env={**kept, **environment},
                              text=True, capture_output=True, timeout=60)
        report = self.bundle / "results/check.json"
        self.json = json.loads(report.read_text()) if report.exists() else None
        return done

    def calls(self, program):
        file = self.bundle / f"{program}.calls"
        return file.read_text() if file.exists() else ""

    def test_all_passes_on_a_gpu(self):
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual((self.json["gpu"], self.json["failed"], len(self.json["steps"])), (True, 0, 6))

    def test_a_skipped_test_on_a_gpu_fails_its_step_and_is_named(self):
        self.programs("bin", GPU, kernels=SKIPPED)
        done = self.check()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("| kernel and training tests | failed, 1 test skipped |", done.stdout)
        self.assertIn("- kernel and training tests: On.Gpu/3\n", done.stdout)
        self.assertEqual(self.json["failed"], 1)
        self.assertEqual([step["skipped"] for step in self.json["steps"]][:2], [[], ["On.Gpu/3"]])
        self.assertIn("On.Gpu/3", (self.bundle / "results/check.md").read_text())

    def test_without_a_gpu_skipped_tests_pass(self):
        self.programs("bin", NO_GPU, SKIPPED, SKIPPED)
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("There is no GPU", done.stdout)
        self.assertEqual((self.json["gpu"], self.json["failed"]), (False, 0))
        self.assertEqual(self.calls("bin/bench_cuda"), "")

    def test_a_gpu_may_be_expected(self):
        for arguments, environment in [(["--expect-gpu"], {}), ([], {"TIDEPOOL_EXPECT_GPU": "1"})]:
            self.programs("bin", NO_GPU, SKIPPED, SKIPPED)
            done = self.check(*arguments, **environment)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertEqual((self.json["gpu"], self.json["failed"]), (True, 2))

    def test_benchmarks_that_measure_nothing_are_a_failure(self):
        self.check()
        self.program("bin/bench_cuda", "no GPU is used\n")
        done = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("measured nothing", done.stdout)

    def test_a_gpu_that_nvidia_smi_lists_is_expected(self):
        self.programs("bin", NO_GPU, SKIPPED, SKIPPED)
        self.program("path/nvidia-smi", "GPU 0: Test GPU\n")
        self.assertEqual(self.check().returncode, 1)

    def test_a_gpu_that_cannot_be_used_is_a_failure(self):
        self.programs("bin", NO_CUBLAS, SKIPPED, SKIPPED)
        self.assertEqual(self.check().returncode, 1)

    def test_a_failed_test_is_a_failure_without_a_gpu_too(self):
        self.programs("bin", NO_GPU, SKIPPED, SKIPPED)
        self.program("bin/nn_cuda_test", SKIPPED, code=1)
        done = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("| kernel and training tests | failed (1), 1 test skipped |", done.stdout)

    def test_tests_of_machines_without_a_gpu_do_not_run_on_one(self):
        self.check()
        self.assertIn("--gtest_filter=-CudaAvailability.*", self.calls("bin/device_cuda_test"))
        self.programs("bin", NO_GPU)
        (self.bundle / "bin/device_cuda_test.calls").unlink()
        self.check()
        self.assertNotIn("filter", self.calls("bin/device_cuda_test"))

    def test_help(self):
        done = self.check("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--expect-gpu", "--cuda", "RESULTS_FOLDER"):
            self.assertIn(word, done.stdout)
        self.assertEqual(self.calls("bin/tidepool"), "")

    def test_wrong_arguments_are_named(self):
        for arguments, word in [(["--gpu"], "--gpu"), (["a", "b"], "'b'"), (["--cuda"], "--cuda"),
                                (["--cuda", "11"], "'11'"), ([""], "no name")]:
            done = self.check(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(word, done.stderr)
            self.assertIn("--help", done.stderr)
            self.assertEqual(self.calls("bin/tidepool"), "")
        self.assertEqual(self.check(TIDEPOOL_EXPECT_GPU="maybe").returncode, 2)

    def test_the_results_folder_may_be_given(self):
        self.check(self.bundle / "elsewhere")
        self.assertTrue((self.bundle / "elsewhere/check.json").exists())
        self.assertFalse((self.bundle / "results").exists())

    def test_the_newest_build_that_the_driver_takes_runs(self):
        for newer, older, used in [(GPU, GPU, "cuda13"), (OLD_DRIVER, GPU, "cuda12"),
                                   (OLD_DRIVER, NO_CUBLAS, "cuda12"), (NO_GPU, NO_GPU, "cuda13"),
                                   (NO_CUBLAS, GPU, "cuda12")]:
            self.two_builds(newer, older)
            done = self.check()
            self.assertIn(f"runs: {used}\n", done.stdout)
            self.assertNotEqual(self.calls(f"{used}/nn_cuda_test"), "", done.stdout)
            for calls in self.bundle.glob("*/*.calls"):
                calls.unlink()

    def test_a_build_may_be_chosen(self):
        self.two_builds(GPU, GPU)
        self.assertIn("runs: cuda12\n", self.check("--cuda", "12").stdout)
        self.assertEqual(self.calls("cuda13/nn_cuda_test"), "")

    def test_programs_of_the_bundle_take_their_arguments(self):
        self.two_builds(OLD_DRIVER, GPU)
        subprocess.run([self.bundle / "bin/tidepool", "plan", "two words"], check=True,
                       capture_output=True, env={"PATH": os.environ["PATH"]})
        self.assertIn("plan two words\n", self.calls("cuda12/tidepool"))


if __name__ == "__main__":
    unittest.main()
