#!/usr/bin/env python3
"""Tests of gpu_check.sh, in a bundle of shell scripts that stand in for the programs."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ProcessPoolExecutor
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
ALL_SKIPPED = SKIPPED.replace("PASSED  ] 1 test.", "PASSED  ] 0 tests.")
IDENTICAL = "  identical  yes: losses and all weights, bit for bit\n"

# Programs that do not end when they are asked to.
HANGS = 'echo $$ > "$0.pid"; trap "" TERM; sleep 600'
SLEEPS = 'echo $$ > "$0.pid"; sleep 600'


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def full_disk():
    """No file can be longer than this, as if there were no more room."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


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
        """A program that prints, and writes its arguments into a file beside it. `also`: more to do."""
        file = self.bundle / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#!/bin/sh\necho "$@" >> "$0.calls"\ncat << "END"\n{output}END\n'
                        f"{also}\nexit {code}\n")
        file.chmod(0o755)

    def programs(self, folder, machines, device=PASSED, kernels=PASSED):
        self.program(f"{folder}/tidepool", machines,
                     also=f'[ "$1" = train ] && cat << "END"\n{IDENTICAL}END')
        self.program(f"{folder}/device_cuda_test", device)
        self.program(f"{folder}/nn_cuda_test", kernels)
        # Called with --minutes M --output FOLDER.
        self.program(f"{folder}/bench_cuda", also="""echo "# Measured" > "$4/cuda.md"
echo '{"schema": 1}' > "$4/cuda.json\"""")

    def two_builds(self, newer, older):
        self.programs("cuda13", newer)
        self.programs("cuda12", older)
        for program in ("tidepool", "device_cuda_test", "nn_cuda_test", "bench_cuda"):
            shutil.copy(SCRIPTS / "gpu_program.sh", self.bundle / "bin" / program)

    def limits(self, **seconds):
        """Shorter ones, in the copies of the scripts."""
        for script in ("gpu_check.sh", "gpu_environment.sh"):
            file = self.bundle / script
            text = file.read_text()
            for name, value in seconds.items():
                text = re.sub(rf"^{name}_seconds=\d+", f"{name}_seconds={value}", text, flags=re.M)
            file.write_text(text)

    def start(self, *arguments, before=None, **environment):
        kept = {"HOME": os.environ.get("HOME", "/"),
                "PATH": f"{self.bundle / 'path'}:{os.environ['PATH']}"}

        def prepare():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if before:
                before()
        return subprocess.Popen([self.bundle / "gpu_check.sh", *arguments],
                                env={**kept, **environment}, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=prepare, start_new_session=True)

    def check(self, *arguments, before=None, timeout=1000, **environment):
        process = self.start(*arguments, before=before, **environment)
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        done = subprocess.CompletedProcess(arguments, process.returncode, output, errors)
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

    def test_several_gpus_train_together_and_their_tests_run(self):
        without = {1: ":TwoGpus/*:FourGpus/*\n", 2: ":FourGpus/*\n", 8: "SaysWhyItCannotMeter\n"}
        for gpus, end in without.items():
            line = f"             up to {gpus} in one training\n"
            self.programs("bin", GPU.replace("presets", line + "presets"))
            done = self.check()
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual(len(self.json["steps"]), 6 if gpus == 1 else 8)
            for program in ("device_cuda_test", "nn_cuda_test"):
                calls = self.calls(f"bin/{program}")
                self.assertTrue(calls.endswith(end), calls)
            used = {1: 0, 2: 2, 8: 2}[gpus]
            trained = self.calls("bin/tidepool")
            self.assertEqual(trained.count(f"--devices {min(gpus, 4)} "), used, trained)
            (self.bundle / "bin/tidepool.calls").unlink()

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
            self.assertIn("The GPU cannot be used: no NVIDIA driver", done.stdout)
            self.assertEqual((self.json["gpu"], self.json["failed"]), (True, 3))

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

    def hangs(self, program, word, code=1):
        """With this program hanging, the check ends, says so, and leaves nothing running."""
        self.limits(start=5, python=5, kill=1, test=5, bench=5, last=5, least=5)
        self.program(program, also=HANGS)
        try:
            done = self.check()
        finally:
            pid = int((self.bundle / f"{program}.pid").read_text())
            still = runs(pid)
            if still:
                os.kill(pid, signal.SIGKILL)
        self.assertEqual(done.returncode, code, done.stdout)
        self.assertIn(word, done.stdout)
        self.assertFalse(still)

    def test_tidepool_may_hang(self):
        self.hangs("bin/tidepool", "does not start: no end within 5 s")

    def test_a_build_may_hang_when_one_is_picked(self):
        self.two_builds(GPU, GPU)
        self.hangs("cuda13/tidepool", "cuda13/tidepool machines: no end within 5 s")

    def test_nvidia_smi_may_hang(self):
        self.programs("bin", NO_GPU, SKIPPED, SKIPPED)
        self.hangs("path/nvidia-smi", "nvidia-smi: no end within 5 s")
        self.assertEqual(self.json["gpu"], True)

    def test_python_may_hang(self):
        self.hangs("path/python3", "python3 did not end within 5 s", code=0)

    def test_tests_may_hang(self):
        self.hangs("bin/nn_cuda_test", "| kernel and training tests | no end after ")

    def test_benchmarks_may_hang(self):
        self.hangs("bin/bench_cuda", "The benchmarks did not end after ")

    def test_what_a_program_leaves_behind_is_not_waited_for(self):
        self.program("bin/nn_cuda_test", PASSED, also='setsid sleep 900 & echo $! > "$0.pid"')
        try:
            done = self.check()
        finally:
            os.kill(int((self.bundle / "bin/nn_cuda_test.pid").read_text()), signal.SIGKILL)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_tests_that_do_not_run_are_a_failure(self):
        for output in ("", "[  PASSED  ] 0 tests.\n", ALL_SKIPPED, "[  PASSED  ] 1 test"):
            self.programs("bin", GPU, kernels=output)
            done = self.check()
            self.assertEqual(done.returncode, 1, output)
            self.assertIn("| kernel and training tests | failed: no test ran", done.stdout)
            self.assertFalse(self.json["steps"][1]["passed"])
        for output in ("", "[  PASSED  ] 0 tests.\n"):
            self.programs("bin", NO_GPU, kernels=output)
            self.assertEqual(self.check().returncode, 1, output)
        self.programs("bin", NO_GPU, kernels=ALL_SKIPPED)
        self.assertEqual(self.check().returncode, 0)

    def test_variables_of_googletest_choose_no_tests(self):
        self.program("bin/nn_cuda_test", PASSED, also='env | grep GTEST > "$0.variables"')
        self.check(GTEST_FILTER="A.*")
        self.assertEqual((self.bundle / "bin/nn_cuda_test.variables").read_text(), "")

    def test_training_that_says_nothing_is_a_failure(self):
        self.program("bin/tidepool", GPU)
        done = self.check()
        self.assertEqual((done.returncode, self.json["failed"]), (1, 4), done.stdout)
        self.assertIn("--graph 4 | failed: it does not say", done.stdout)

    def test_a_program_that_says_nothing_is_a_failure(self):
        self.program("bin/tidepool")
        done = self.check()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("The GPU cannot be used: ", done.stdout)

    def test_an_unusable_device_is_a_failure_where_a_gpu_is(self):
        self.programs("bin", NO_CUBLAS)
        done = self.check()
        self.assertEqual((done.returncode, self.json["failed"]), (1, 1), done.stdout)
        self.assertIn("The GPU cannot be used: libcublas.so.12: cannot open", done.stdout)

    def test_measurements_are_an_object(self):
        for text in ("", " ", "[]", "{}", "no GPU", '{"schema": 1,'):
            self.program("bin/bench_cuda", also=f"echo '{text}' > \"$4/cuda.json\"")
            done = self.check()
            self.assertEqual(done.returncode, 1, text)
            self.assertIn("measured nothing", done.stdout)

    def pid_of(self, program):
        """Waits until it runs."""
        file = self.bundle / f"{program}.pid"
        until = time.monotonic() + 1000
        while not (file.exists() and file.read_text().endswith("\n")) and time.monotonic() < until:
            time.sleep(0.02)
        return int(file.read_text())

    def test_signals_end_it_and_the_program_that_runs(self):
        for program, number, code in (("bin/nn_cuda_test", signal.SIGINT, 130),
                                      ("bin/nn_cuda_test", signal.SIGTERM, 143),
                                      ("bin/bench_cuda", signal.SIGINT, 130),
                                      ("bin/tidepool", signal.SIGINT, 130),
                                      ("path/nvidia-smi", signal.SIGTERM, 143),
                                      ("path/python3", signal.SIGINT, 130)):
            self.programs("bin", GPU)
            self.program("path/nvidia-smi", code=1)
            self.program(program, also=SLEEPS)
            process = self.start()
            pid = self.pid_of(program)
            process.send_signal(number)
            try:
                process.communicate(timeout=1000)
                self.assertEqual(process.returncode, code, program)
                self.assertFalse(runs(pid), program)
            finally:
                process.kill()
                if runs(pid):
                    os.kill(pid, signal.SIGKILL)
            (self.bundle / f"{program}.pid").unlink()

    def test_a_program_that_ignores_the_signal_ends_too(self):
        self.limits(kill=1)
        self.program("bin/nn_cuda_test", also=HANGS)
        process = self.start()
        pid = self.pid_of("bin/nn_cuda_test")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=1000)
        self.assertEqual(process.returncode, 143)
        self.assertFalse(runs(pid))

    def test_output_that_cannot_be_written_is_a_failure(self):
        self.programs("bin", GPU, kernels="a line of a test\n" * 600 + PASSED)
        done = self.check(before=full_disk)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("| kernel and training tests | failed: its output could not be written |",
                      done.stdout)
        # Skips are seen all the same.
        self.programs("bin", GPU, kernels="a line of a test\n" * 600 + SKIPPED)
        done = self.check(before=full_disk)
        self.assertIn("- kernel and training tests: On.Gpu/3\n", done.stdout)

    def test_a_report_that_cannot_be_written_is_a_failure(self):
        (self.bundle / "results").mkdir()
        (self.bundle / "results/check.md").symlink_to("/dev/full")
        done = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be written", done.stderr)

    def test_a_gpu_that_nvidia_smi_lists_line_by_line(self):
        self.programs("bin", NO_GPU, SKIPPED, SKIPPED)
        self.program("path/nvidia-smi", "GPU 0: Test GPU\n", also="sleep 0.3; echo 'GPU 1: Other'")
        self.assertEqual(self.check().returncode, 1)
        self.assertEqual(self.json["gpu"], True)

    def test_a_program_that_is_killed_at_once_did_not_run_to_its_limit(self):
        self.program("bin/nn_cuda_test", also="kill -KILL $$")
        done = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("| kernel and training tests | failed (137): killed, perhaps", done.stdout)
        self.assertNotIn("Killed", done.stderr)

    def test_only_folders_with_programs_are_builds(self):
        self.two_builds(GPU, GPU)
        (self.bundle / "cuda14-results").mkdir()
        (self.bundle / "cuda15").mkdir()
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("runs: cuda13\n", done.stdout)
        self.assertNotIn("cuda14", done.stdout)

    def test_the_whole_version_is_in_the_report(self):
        (self.bundle / "VERSION").write_text("commit test\nwith uncommitted changes\n")
        self.check()
        self.assertIn("commit test with uncommitted changes\n",
                      (self.bundle / "results/check.md").read_text())

    def test_help(self):
        done = self.check("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--expect-gpu", "--cuda", "--minutes", "RESULTS_FOLDER"):
            self.assertIn(word, done.stdout)
        self.assertEqual(self.calls("bin/tidepool"), "")

    def test_wrong_arguments_are_named(self):
        for arguments, word in [(["--gpu"], "--gpu"), (["a", "b"], "'b'"), (["--cuda"], "--cuda"),
                                (["--cuda", "11"], "'11'"), ([""], "no name"),
                                (["--minutes"], "2 to 60"), (["--minutes", "1"], "'1'"),
                                (["--minutes", "6.5"], "'6.5'")]:
            done = self.check(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(word, done.stderr)
            self.assertIn("--help", done.stderr)
            self.assertEqual(self.calls("bin/tidepool"), "")
        self.assertEqual(self.check(TIDEPOOL_EXPECT_GPU="maybe").returncode, 2)

    def test_the_benchmarks_get_what_is_left_of_the_minutes(self):
        self.check("--minutes", "4")
        minutes = float(re.search(r"--minutes (\S+)", self.calls("bin/bench_cuda")).group(1))
        self.assertTrue(2.5 < minutes < 3.4, minutes)

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

    def test_links_to_programs_of_the_bundle(self):
        self.two_builds(OLD_DRIVER, GPU)
        (self.bundle / "path/other").symlink_to(self.bundle / "bin/tidepool")
        (self.bundle / "path/check").symlink_to(self.bundle / "gpu_check.sh")
        for command, code in (("path/other", 0), ("path/check", 0)):
            done = subprocess.run([self.bundle / command, "--help"], capture_output=True, text=True,
                                  env={"PATH": os.environ["PATH"]})
            self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("--help\n", self.calls("cuda12/tidepool"))

    def test_own_library_folders_come_first(self):
        self.program("bin/nn_cuda_test", PASSED, also='echo "$LD_LIBRARY_PATH" > "$0.path"')
        self.program("path/python3", f"{self.bundle / 'bin'}\nno folder\n")
        self.check(LD_LIBRARY_PATH="/own/one:/own/two")
        path = (self.bundle / "bin/nn_cuda_test.path").read_text().strip()
        self.assertTrue(path.startswith("/own/one:/own/two:"), path)
        self.assertIn(f":{self.bundle / 'bin'}", path)


def run_one(name):
    """What went wrong with this test."""
    result = unittest.TestResult()
    GpuCheck(name).run(result)
    ran = result.testsRun == 1
    return [text for _, text in result.errors + result.failures] or ([] if ran else ["did not run"])


def run_all():
    """Most of the time is waiting for limits to pass: tests wait at the same time. Those that wait
    longest begin."""
    names = sorted(unittest.defaultTestLoader.getTestCaseNames(GpuCheck),
                   key=lambda name: "hang" not in name and "signal" not in name)
    with ProcessPoolExecutor(max_workers=8) as pool:
        wrong = [(name, text) for name, texts in zip(names, pool.map(run_one, names)) for text in texts]
    for name, text in wrong:
        print(f"{name}:\n{text}")
    print(f"{len(names)} tests, {len(wrong)} failures")
    return bool(wrong) or not names


if __name__ == "__main__":
    if len(sys.argv) > 1:
        unittest.main()
    sys.exit(run_all())
