#!/usr/bin/env python3
"""Faults in copies of the project's sources, which the tests on the CUDA stand-in must find. A suite
has one program with all of its faults; STANDIN_MUTANT chooses one, without it there is none.

    mutants.py list                              NAME FILE SUITE a line, for CMake
    mutants.py write INPUT OUTPUT                the file with its faults
    mutants.py run PROGRAM NAME SEED...          passes when the fault's test fails with a seed
    mutants.py control PROGRAM SUITE SEED        passes when these tests pass without a fault
    mutants.py find PROGRAM NAME SEED...         the quickest test that finds the fault with each of
                                                 the seeds, and quicker ones that do with some
`find` runs all tests but those that GTEST_FILTER leaves out.
"""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from typing import NamedTuple

DEVICE = "src/device/cuda/cuda_device.cpp"
GPU_STATE = "src/device/cuda/gpu_state.cpp"
GPUS = "src/device/cuda/gpus.cpp"
HOST_CALLS = "src/device/cuda/host_calls.cpp"
NVML = "src/device/cuda/nvml.cpp"
EXECUTOR = "src/runtime/executor.cpp"
GRAPHS = "src/runtime/executor_graphs.cpp"
RUNNER = "src/nn/training_runner.cpp"
WRITER = "src/nn/program_writer.cpp"
KERNELS = "src/nn/kernels/cuda/"


class Mutant(NamedTuple):
    file: str
    text: str       # of the file, there once; what is between « and » changes
    change: object  # what stands there then, or a list, one for each «»: PART what was there, FAULT
                    # whether this fault is chosen
    test: str       # finds it, quickly

    @property
    def suite(self):
        return "nn" if self.file.startswith("src/nn/") else "device"


LEFT_OUT = "if (!FAULT) { PART }"

MUTANTS = {
    "wait-is-forgotten": Mutant(
        DEVICE,
        "«s.make(s.gpu_of(stream),\n"
        "         [&] { TIDEPOOL_CUDA_CHECK(cudaStreamWaitEvent(s.stream(stream), e.event, 0)); });»",
        LEFT_OUT, "Cuda/EveryDevice/0.EventsOrderHostWorkAndCopies"),
    "record-on-another-stream": Mutant(
        DEVICE, "cudaEventRecord(e.event, s.stream(«stream»))", "FAULT ? StreamId{0} : PART",
        "FourGpus/SeveralGpus.EachHasMemoryOfItsOwnAndAllShareTheHosts/0"),
    "capture-does-not-join": Mutant(
        DEVICE, "    «wait(0, s.joins[at(i)]);»\n", LEFT_OUT,
        "CudaDeviceTest.AGraphRepeatsCopiesAndHostWorkWithTheArgumentOfItsLaunch"),
    "capture-does-not-fork": Mutant(
        DEVICE,
        "«for (StreamId i = 1; i < static_cast<StreamId>(s.streams.size()); ++i) "
        "wait(i, s.joins[0]);»",
        LEFT_OUT, "CudaDeviceTest.AGraphRepeatsCopiesAndHostWorkWithTheArgumentOfItsLaunch"),
    "argument-of-the-last-launch": Mutant(
        HOST_CALLS, "g.argument = «g.launches.front()»;", "FAULT ? g.launches.back() : PART",
        "CudaDeviceTest.AGraphRepeatsCopiesAndHostWorkWithTheArgumentOfItsLaunch"),
    "copies-of-the-file-turned-round": Mutant(
        HOST_CALLS, "} else if («c.to == nullptr») {", "(PART) != FAULT",
        "ThreeTiersOnCuda.AFailedTransferEndsTheRunAndNamesFileAndTensor"),
    "host-call-is-reused-too-early": Mutant(
        DEVICE, "      s.enqueue(stream, call);«»\n      return;\n    }\n    try {",
        " if (FAULT) s.calls.give_back(call);", "Cuda/EveryDevice/0.HostWorkOfAStreamRunsInOrder"),
    "failures-are-forgotten": Mutant(
        DEVICE, "rethrow_exception(first);\n  «s.failure.rethrow();»\n", LEFT_OUT,
        "Cuda/EveryDevice/0.TheFirstExceptionInHostWorkIsADeviceErrorAndNothingBehindItRuns"),
    "capture-forgets-records": Mutant(
        DEVICE, "if («event.record == Event::Record::in_capture») event.record", "FAULT || PART",
        "CudaDeviceOnStandin.ARecordBeforeACaptureKeepsItsTime"),
    "copies-turned-round": Mutant(
        DEVICE, ": out     ? «cudaMemcpyDeviceToHost»", "(FAULT ? cudaMemcpyHostToDevice : PART)",
        "Cuda/EveryDevice/0.CopiesHaveTheRightContentInEveryDirection"),
    "arena-is-still-being-zeroed": Mutant(
        DEVICE, "«each_gpu([](SpaceId) { TIDEPOOL_CUDA_CHECK(cudaDeviceSynchronize()); });»",
        LEFT_OUT, "SeveralGpusOnStandin.EveryArenaIsZeroedBeforeItIsUsed"),
    "captures-what-has-never-run": Mutant(
        GRAPHS, "if («!ops_have_run(guards)») {", "!FAULT && PART",
        "CudaDeviceOnStandin.TheFirstIterationsOfAllAreNotCaptured"),
    "captures-what-other-guards-ran": Mutant(
        GRAPHS, "return ran_ && «(wanted & used_guards_ & ~ran_guards_) == 0»;",
        "(FAULT || PART)", "CudaDeviceOnStandin.NoOpIsCapturedThatHasNotRun"),
    "graph-destroyed-in-a-capture": Mutant(
        EXECUTOR,
        "  «»if (graph_ != kNone) device_.destroy_graph(graph_);\n  graph_ = kNone;\n"
        "  «device_.begin_capture();»",
        ["if (FAULT) device_.begin_capture(); ", LEFT_OUT],
        "CudaDeviceOnStandin.GraphsCapturedAnewKeepTheirTimesAndFreeTheOld"),
    "old-graphs-stay": Mutant(
        EXECUTOR, "«if (graph_ != kNone) device_.destroy_graph(graph_);»\n", LEFT_OUT,
        "CudaDeviceOnStandin.GraphsCapturedAnewKeepTheirTimesAndFreeTheOld"),
    "what-the-host-did-is-told-last": Mutant(
        DEVICE, "      «failure.rethrow();»\n      if (!several()) throw;", LEFT_OUT,
        "CudaDeviceOnStandin.WhatFailedOnTheHostIsToldBeforeTheErrorItCaused"),
    "power-of-another-gpu": Mutant(
        NVML, "handle(«bus_id.data()», &device)", 'FAULT ? "0" : PART',
        "CudaDeviceOnStandin.PowerIsThatOfTheGpuAtTheSameBus"),
    "fingerprint-without-tf32": Mutant(
        GPUS, '«tf32 == nullptr» ? ""', "FAULT || PART",
        "CudaDeviceOnStandin.TheFingerprintHasWhatBitsDependOn"),
    # Of several GPUs.
    "records-while-another-gpu-is-current": Mutant(
        DEVICE,
        "  s.make(«s.gpu_of(stream)»,\n"
        "         [&] { TIDEPOOL_CUDA_CHECK(cudaEventRecord(e.event, s.stream(",
        "FAULT ? SpaceId{0} : PART", "TwoGpus/SeveralGpus.TimesOfAllAreOnOneClock/0"),
    "launches-while-another-gpu-is-current": Mutant(
        DEVICE, "  s.make(«s.gpu_of(stream)», [&] {\n    if (fails)", "FAULT ? SpaceId{0} : PART",
        "SeveralGpusOnStandin.WorkRunsWhileItsGpuIsCurrent"),
    "kernels-on-the-first-gpu": Mutant(
        DEVICE, "work.argument, s.streams[«at(stream)»].own.get());", "FAULT ? 0 : PART",
        "TwoGpus/PlansOnSeveralGpus.TimesOfOpsAreThoseOfTheirGpu/0"),
    "streams-and-handles-on-the-first-gpu": Mutant(
        DEVICE, "    s.make(«stream.device», [&] {\n      s.streams.push_back",
        "FAULT ? SpaceId{0} : PART", "SeveralGpusOnStandin.LibrariesAreOnTheGpuOfTheirStream"),
    "events-on-the-first-gpu": Mutant(
        DEVICE, "    const CurrentGpu current(number_of(«event.gpu»));\n",
        "FAULT ? SpaceId{0} : PART", "TwoGpus/SeveralGpus.TimesOfAllAreOnOneClock/0"),
    "arenas-on-the-first-gpu": Mutant(
        DEVICE, "      s.make(«g», [&] { action(g); });", "FAULT ? SpaceId{0} : PART",
        "TwoGpus/SeveralGpus.EachHasMemoryOfItsOwnAndAllShareTheHosts/0"),
    "only-one-gpu-is-zeroed-in-time": Mutant(
        DEVICE, "«each_gpu([](SpaceId) { TIDEPOOL_CUDA_CHECK(cudaDeviceSynchronize()); });»",
        "if (FAULT) { TIDEPOOL_CUDA_CHECK(cudaDeviceSynchronize()); } else { PART }",
        "SeveralGpusOnStandin.EveryArenaIsZeroedBeforeItIsUsed"),
    "times-by-the-clock-of-another-gpu": Mutant(
        DEVICE, "s.gpus[«at(e.gpu)»]->clock().time_of", "FAULT ? 0 : PART",
        "TwoGpus/SeveralGpus.TimesOfAllAreOnOneClock/0"),
    "copies-on-a-stream-of-another-gpu": Mutant(
        DEVICE, "  if («gpu == gpu_of(id)») return make(", "FAULT || PART",
        "TwoGpus/SeveralGpus.AStreamTakesCopiesOfOtherGpusInItsOrder/0"),
    "copies-aside-do-not-wait": Mutant(
        DEVICE, "«TIDEPOOL_CUDA_CHECK(cudaStreamWaitEvent(aside, left, 0));»", LEFT_OUT,
        "TwoGpus/SeveralGpus.AStreamTakesCopiesOfOtherGpusInItsOrder/0"),
    "copies-aside-are-not-waited-for": Mutant(
        DEVICE,
        "«make(gpu_of(id), [&] { TIDEPOOL_CUDA_CHECK(cudaStreamWaitEvent(stream(id), done, 0)); });»",
        LEFT_OUT, "TwoGpus/SeveralGpus.AStreamTakesCopiesOfOtherGpusInItsOrder/0"),
    "only-the-first-gpu-is-waited-for": Mutant(
        DEVICE, "    «»try {\n      s.make(stream.gpu,", "if (FAULT && stream.gpu > 0) continue; ",
        "SeveralGpusOnStandin.CudasOwnErrorsNameTheGpu"),
    "errors-do-not-name-the-gpu": Mutant(
        DEVICE, "      if («!several()») throw;\n", "FAULT || PART",
        "SeveralGpusOnStandin.CudasOwnErrorsNameTheGpu"),
    "host-arena-for-one-gpu": Mutant(
        GPU_STATE, "«cudaHostAllocPortable»", "FAULT ? cudaHostAllocDefault : PART",
        "TwoGpus/SeveralGpus.EachHasMemoryOfItsOwnAndAllShareTheHosts/0"),
    "gpu-stays-current": Mutant(
        GPUS, "  «if (before_ != kUnchanged) (void)cudaSetDevice(before_);»", LEFT_OUT,
        "SeveralGpusOnStandin.WorkRunsWhileItsGpuIsCurrent"),
    "gpus-may-differ": Mutant(
        GPUS, "if («named(properties) != named(first)»)", "!FAULT && PART",
        "SeveralGpusOnStandin.DifferentOnesAreRefusedWithTheirNames"),
    "missing-gpus-are-not-counted": Mutant(
        GPUS, "if («devices < gpus») return", "!FAULT && PART",
        "SeveralGpusOnStandin.TooFewAreRefusedWithTheirNumber"),
    "host-updates-round-once": Mutant(
        KERNELS + "host_updates.cpp", "«op.momentum * momentum[i] + decayed»",
        "FAULT ? std::fma(op.momentum, momentum[i], decayed) : PART",
        "HostUpdatesOfCuda.HaveTheBitsOfTheGpuAndOfTheReference"),
    "kernels-are-not-compared": Mutant(
        RUNNER, "  «if (auto same = runner->check_algorithms(); !same) return fail(same.error());»\n",
        LEFT_OUT, "CudaTrainingOnStandin.RefusesKernelsThatAreNotThoseOfTheProgram"),
    "wrong-classes-are-let-through": Mutant(
        RUNNER, "    «read_sample(feed, sample, to);»\n",
        "try { PART } catch (const std::exception&) { if (!FAULT) throw; }",
        "CudaTrainingOnStandin.RefusesALabelOutsideTheClasses"),
    "any-label-is-an-index": Mutant(
        KERNELS + "reductions.cu", "} else if («label >= classes») {", "!FAULT && PART",
        "CudaKernels.DoNotIndexWithLabelsThatAreNoClasses"),
    "sizes-are-not-checked": Mutant(
        WRITER, "    «for (const Operand& operand : operands) check_size(operand);»\n", LEFT_OUT,
        "CudaTrainingOnStandin.RefusesTensorsThatItsLibrariesCannotCount"),
    "no-convolution-of-our-own": Mutant(
        KERNELS + "convolution.cpp", 'if (chosen_.empty()) «add_algorithm("own", own_workspace);»',
        LEFT_OUT, "CudaTrainingOnStandin.RunsWhereCudnnHasNothingDeterministic"),
    "reused-call-keeps-its-work": Mutant(
        DEVICE, "    «*call = HostCall{};»\n", LEFT_OUT,
        "CudaDeviceOnStandin.ACopyWithinTheHostAfterHostWorkIsThatCopy"),
    "products-always-in-tf32": Mutant(
        KERNELS + "cublas_product.cpp", "«tf32_» ? CUBLAS_TF32_TENSOR_OP_MATH", "FAULT || PART",
        "CudaKernels.RoundToTf32WhereItIsAllowedOnly"),
    "convolutions-always-in-tf32": Mutant(
        KERNELS + "convolution.cpp", "«tf32» ? CUDNN_DEFAULT_MATH", "FAULT || PART",
        "CudaKernels.RoundToTf32WhereItIsAllowedOnly"),
    "maximum-for-average": Mutant(
        KERNELS + "pooling.cpp", "«CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING»",
        "FAULT ? CUDNN_POOLING_MAX : PART", "CudaKernels.AreDeterministicUnlessAskedOtherwise"),
    "too-small-a-workspace": Mutant(
        KERNELS + "convolution.cu", "parts == 1 ? 0 : «parts» * weights_of(s)",
        "(FAULT ? parts - 1 : PART)",
        "CudaKernels.OfOurOwnForConvolutionsAgreeWithTheReferenceAndRepeatTheirBits"),
    "last-terms-dropped": Mutant(
        KERNELS + "convolution.cu", "part_depth = «(e.depth - 1) / parts + 1»;",
        "FAULT ? e.depth / parts : PART",
        "CudaKernels.OfOurOwnForConvolutionsAgreeWithTheReferenceAndRepeatTheirBits"),
    "every-group-sees-the-first": Mutant(
        KERNELS + "convolution.cu", "channel = «group» * (s.channels / s.groups) + term / taps;",
        "(FAULT ? 0 : PART)",
        "CudaKernels.OfOurOwnForConvolutionsAgreeWithTheReferenceAndRepeatTheirBits"),
    "groups-are-not-told": Mutant(
        KERNELS + "convolution.cpp",
        "    «TIDEPOOL_CUDA_CHECK(cudnn().cudnnSetConvolutionGroupCount(get(), shape.groups));»\n",
        LEFT_OUT, "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
    "gradients-of-the-first-channels": Mutant(
        KERNELS + "elementwise.cpp", "operand(c.p, 0) + «op.first_channel» * plane,",
        "(FAULT ? 0 : PART)", "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
    "half-a-warp": Mutant(
        KERNELS + "reductions.cu", "«constexpr» unsigned kAllLanes = «0xffffffffU»",
        ["const", "FAULT ? 0x0000ffffU : PART"],
        "CudaKernels.DoNotIndexWithLabelsThatAreNoClasses"),
    "adamw-without-barrier": Mutant(
        KERNELS + "elementwise.cu", "    root = factors.root;\n  }\n  «__syncthreads();»", LEFT_OUT,
        "HostUpdatesOfCuda.HaveTheBitsOfTheGpuAndOfTheReference"),
    "sum-without-barrier": Mutant(
        KERNELS + "reductions.cu", "parts[threadIdx.x / 32] = pair;\n  «__syncthreads();»", LEFT_OUT,
        "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
    "tile-overwritten-too-early": Mutant(
        KERNELS + "convolution.cu", "    «__syncthreads();»\n    since_carry += kDepth;", LEFT_OUT,
        "CudaKernels.OfOurOwnForConvolutionsAgreeWithTheReferenceAndRepeatTheirBits"),
    "product-without-workspace": Mutant(
        KERNELS + "cublas_product.cpp", "cublasSetWorkspace_v2(s.cublas(), «workspace»,",
        "FAULT ? operand<std::byte>(p, 0) + 256 : PART",
        "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
    "later-tokens-are-seen": Mutant(
        KERNELS + "attention.cu", "«causal» ? row % tokens + 1 : tokens", "!FAULT && PART",
        "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
    "heads-taken-for-samples": Mutant(
        KERNELS + "attention.cpp", "return «by_sample» ? m.head : m.sample;", "by_sample != FAULT",
        "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
    "equal-tokens-overwrite-each-other": Mutant(
        KERNELS + "embedding.cu", "if («is_later != 0» || token < 0", "(!FAULT && PART)",
        "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
    "tokens-read-too-early": Mutant(
        KERNELS + "embedding.cu",
        "chunk[threadIdx.x] = own < count ? tokens[own] : -1;\n    «__syncthreads();»", LEFT_OUT,
        "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
    "any-token-is-an-index": Mutant(
        KERNELS + "embedding.cu", "const bool known = «token >= 0 && token < e.vocabulary»;",
        "FAULT || (PART)", "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
    "layer-norm-without-barrier": Mutant(
        KERNELS + "layer_norm.cu",
        "products[threadIdx.y][threadIdx.x] = product;\n  «__syncthreads();»", LEFT_OUT,
        "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
    "lstm-sum-without-barrier": Mutant(
        KERNELS + "lstm.cu", "sums[threadIdx.y][threadIdx.x] = sum;\n  «__syncthreads();»", LEFT_OUT,
        "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
    "workspace-of-another-algorithm": Mutant(
        KERNELS + "convolution.cpp",
        "chosen(algorithm), workspace, workspace_of(«algorithm»), &kZero, y_.get(), p[2]));",
        "FAULT ? 0 : PART", "CudaKernels.AgreeWithTheReferenceAndWriteEveryByte"),
}

SECONDS = 1000


def with_fault(text, name, source):
    """`text` where the fault can be chosen."""
    mutant = MUTANTS[name]
    pieces = re.split("[«»]", mutant.text)
    old = "".join(pieces)
    if text.count(old) != 1:
        raise SystemExit(f"mutants.py: {name}: its text is {text.count(old)} times in {source}; "
                         "adapt MUTANTS to the source")
    changes = mutant.change if isinstance(mutant.change, list) else [mutant.change]
    for i, change in enumerate(changes):
        at = 2 * i + 1
        pieces[at] = change.replace("FAULT", flag_of(name)).replace("PART", pieces[at])
    return text.replace(old, "".join(pieces))


def flag_of(name):
    return "fault_" + name.replace("-", "_")


def write(source, target):
    with open(source, encoding="utf-8") as file:
        text = file.read()
    names = [name for name, mutant in MUTANTS.items() if source.endswith("/" + mutant.file)]
    flags = []
    for name in names:
        text = with_fault(text, name, source)
        flags.append(f'static const bool {flag_of(name)} = standin::is_chosen("{name}");\n')
    with open(target, "w", encoding="utf-8") as file:
        file.write(f'#include "cuda_standin/chosen_fault.h"\n{"".join(flags)}#line 1 "{source}"\n{text}')


def tests_of(suite):
    """Those that find this suite's faults."""
    return sorted({mutant.test for mutant in MUTANTS.values() if mutant.suite == suite})


def run_tests(program, tests, seed, name=None):
    """What the tests said: (None, why) when there is no answer, (True, "") when all passed,
    (False, by which) when one failed."""
    environment = dict(os.environ, STANDIN_SEED=seed)
    environment.pop("STANDIN_MUTANT", None)
    if name is not None:
        environment["STANDIN_MUTANT"] = name
    # The first failure ends the process.
    command = [program, f"--gtest_filter={':'.join(tests)}", "--gtest_break_on_failure",
               "--gtest_color=no"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True,
                              timeout=SECONDS, check=False)
    except (subprocess.TimeoutExpired, OSError) as error:
        return None, str(error)
    begun = re.findall(r"^\[ RUN      \] (\S+)", done.stdout, re.MULTILINE)
    if missing := [test for test in tests if done.returncode == 0 and test not in begun]:
        return None, f"there is no test {missing[0]}"
    if not begun:
        return None, f"no test ran (exit code {done.returncode})"
    if done.returncode == 0:
        return True, ""
    failure = re.search(r"^(.*): Failure$", done.stdout, re.MULTILINE)
    how = failure[1] if failure else f"it ended with {done.returncode}"
    return False, f"{begun[-1]}: {how}"


def run(program, name, *seeds):
    test = MUTANTS[name].test
    for seed in seeds:
        passed, why = run_tests(program, [test], seed, name)
        if passed is False:
            print(f"found with seed {seed} by {why}")
            return 0
        if passed is None:
            print(f"seed {seed}: {why}")
    print(f"{name} is not found by {test} with seeds {', '.join(seeds)}. Where another test finds it, "
          f"`python3 {__file__} find {program} {name} {' '.join(seeds)}` says which: write that into "
          "MUTANTS. Where none does, a test is missing.")
    return 1


def control(program, suite, seed):
    passed, why = run_tests(program, tests_of(suite), seed)
    print("passed" if passed else f"without a fault: {why}")
    return 0 if passed else 1


def by_time(program, seed):
    """The tests that pass without a fault, quickest first."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        environment = dict(os.environ, STANDIN_SEED=seed)
        environment.pop("STANDIN_MUTANT", None)
        subprocess.run([program, f"--gtest_output=json:{report.name}"], env=environment,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        suites = json.load(report)["testsuites"]
    tests = [(float(test["time"].rstrip("s")), f"{suite['name']}.{test['name']}")
             for suite in suites for test in suite["testsuite"]
             if test["result"] == "COMPLETED" and "failures" not in test]
    return [test for _, test in sorted(tests)]


def find(program, name, *seeds):
    for test in by_time(program, seeds[0]):
        by = [seed for seed in seeds if run_tests(program, [test], seed, name)[0] is False]
        if by:
            print(f"{name}: {test}, with seeds {', '.join(by)}", flush=True)
        if len(by) == len(seeds):
            return 0
    print(f"{name}: no test finds it with all of the seeds")
    return 1


def main():
    command, *arguments = sys.argv[1:] or [""]
    if command == "list":
        for name, mutant in MUTANTS.items():
            print(name, mutant.file, mutant.suite)
        return 0
    commands = {"write": write, "run": run, "control": control, "find": find}
    if command not in commands:
        raise SystemExit(__doc__)
    return commands[command](*arguments)


if __name__ == "__main__":
    sys.exit(main())
