#!/usr/bin/env python3
"""Faults put into copies of the project's sources, one at a time: the tests on the CUDA stand-in must
find each.

    mutants.py list                          NAME;FILE;TESTS a line, for CMake
    mutants.py write NAME INPUT OUTPUT       the file with the fault
    mutants.py run NAME PROGRAM FILTER SEED...    passes when a seed's tests fail; says which
Those called no-fault are copies without one: their tests must pass.
"""
import os
import re
import subprocess
import sys

DEVICE = "src/device/cuda/cuda_device.cpp"
GPUS = "src/device/cuda/gpus.cpp"
HOST_CALLS = "src/device/cuda/host_calls.cpp"
EXECUTOR = "src/runtime/executor.cpp"
NN = "src/nn/"
KERNELS = "src/nn/kernels/cuda/"

# name: (file, tests that look for it, text, text of the fault). The text is there once.
MUTANTS = {
    "no-fault-in-the-device": (DEVICE, "device", "struct Event {", "struct Event {"),
    "no-fault-in-the-kernels": (KERNELS + "elementwise.cu", "nn", "struct Sum {", "struct Sum {"),
    "wait-is-forgotten": (
        DEVICE, "device",
        "  s.make(s.gpu_of(stream),\n"
        "         [&] { TIDEPOOL_CUDA_CHECK(cudaStreamWaitEvent(s.stream(stream), e.event, 0)); });",
        "  (void)stream;"),
    "record-on-another-stream": (
        DEVICE, "device",
        "cudaEventRecord(e.event, s.stream(stream))", "cudaEventRecord(e.event, s.stream(0))"),
    "capture-does-not-join": (DEVICE, "device", "    wait(0, s.joins[at(i)]);\n", ""),
    "capture-does-not-fork": (
        DEVICE, "device",
        "  for (StreamId i = 1; i < static_cast<StreamId>(s.streams.size()); ++i) "
        "wait(i, s.joins[0]);", ""),
    "argument-of-the-last-launch": (
        HOST_CALLS, "device", "g.argument = g.launches.front();", "g.argument = g.launches.back();"),
    "copies-of-the-file-turned-round": (
        HOST_CALLS, "device", "  } else if (c.to == nullptr) {", "  } else if (c.to != nullptr) {"),
    "host-call-is-reused-too-early": (
        DEVICE, "device", "      s.enqueue(stream, call);\n      return;\n    }\n    try {",
        "      s.enqueue(stream, call);\n      s.calls.give_back(call);\n      return;\n    }\n"
        "    try {"),
    "failures-are-forgotten": (
        DEVICE, "device", "rethrow_exception(first);\n  s.failure.rethrow();\n",
        "rethrow_exception(first);\n"),
    "capture-forgets-records": (
        DEVICE, "device", "if (event.record == Event::Record::in_capture) event.record",
        "event.record"),
    "copies-turned-round": (
        DEVICE, "device", ": out     ? cudaMemcpyDeviceToHost", ": out     ? cudaMemcpyHostToDevice"),
    "arena-is-still-being-zeroed": (
        DEVICE, "device",
        "  each_gpu([](SpaceId) { TIDEPOOL_CUDA_CHECK(cudaDeviceSynchronize()); });\n", ""),
    "captures-what-has-never-run": (
        EXECUTOR, "device", "if (!ops_have_run(guards)) {", "if (ran_ && !ran_) {"),
    "captures-what-other-guards-ran": (
        EXECUTOR, "device", "return ran_ && (wanted & used_guards_ & ~ran_guards_) == 0;",
        "return ran_;"),
    "graph-destroyed-in-a-capture": (
        EXECUTOR, "device",
        "  if (graph_ != kNone) device_.destroy_graph(graph_);\n  graph_ = kNone;\n"
        "  device_.begin_capture();",
        "  device_.begin_capture();\n  if (graph_ != kNone) device_.destroy_graph(graph_);"),
    "old-graphs-stay": (
        EXECUTOR, "device", "  if (graph_ != kNone) device_.destroy_graph(graph_);\n", ""),
    "what-the-host-did-is-told-last": (
        DEVICE, "device", "      failure.rethrow();\n      if (!several()) throw;",
        "      if (!several()) throw;"),
    "power-of-another-gpu": (
        "src/device/cuda/nvml.cpp", "device", "handle(bus_id.data(), &device)",
        'handle("0", &device)'),
    "fingerprint-without-tf32": (
        GPUS, "device", 'tf32 == nullptr ? ""', 'true ? ""'),
    # Of several GPUs.
    "records-while-another-gpu-is-current": (
        DEVICE, "device",
        "  s.make(s.gpu_of(stream),\n"
        "         [&] { TIDEPOOL_CUDA_CHECK(cudaEventRecord(e.event, s.stream(stream))); });",
        "  s.make(0, [&] { TIDEPOOL_CUDA_CHECK(cudaEventRecord(e.event, s.stream(stream))); });"),
    "launches-while-another-gpu-is-current": (
        DEVICE, "device", "  s.make(s.gpu_of(stream), [&] {\n    if (fails)",
        "  s.make(0, [&] {\n    if (fails)"),
    "kernels-on-the-first-gpu": (
        DEVICE, "device", "work.argument, s.streams[at(stream)].own.get());",
        "work.argument, s.streams[0].own.get());"),
    "streams-and-handles-on-the-first-gpu": (
        DEVICE, "device", "    s.make(stream.device, [&] {\n      s.streams.push_back",
        "    s.make(0, [&] {\n      s.streams.push_back"),
    "events-on-the-first-gpu": (
        DEVICE, "device", "    const CurrentGpu current(number_of(event.gpu));\n",
        "    const CurrentGpu current(number_of(0));\n"),
    "arenas-on-the-first-gpu": (
        DEVICE, "device", "      s.make(g, [&] { action(g); });", "      s.make(0, [&] { action(g); });"),
    "only-one-gpu-is-zeroed-in-time": (
        DEVICE, "device",
        "  each_gpu([](SpaceId) { TIDEPOOL_CUDA_CHECK(cudaDeviceSynchronize()); });\n",
        "  TIDEPOOL_CUDA_CHECK(cudaDeviceSynchronize());\n"),
    "times-by-the-clock-of-another-gpu": (
        DEVICE, "device", "s.gpus[at(e.gpu)]->clock().time_of", "s.gpus[0]->clock().time_of"),
    "copies-on-a-stream-of-another-gpu": (
        DEVICE, "device", "  if (gpu == gpu_of(id)) return make(", "  if (id >= 0) return make("),
    "copies-aside-do-not-wait": (
        DEVICE, "device", "    TIDEPOOL_CUDA_CHECK(cudaStreamWaitEvent(aside, left, 0));\n",
        "    (void)left;\n"),
    "copies-aside-are-not-waited-for": (
        DEVICE, "device",
        "  make(gpu_of(id), [&] { TIDEPOOL_CUDA_CHECK(cudaStreamWaitEvent(stream(id), done, 0)); });\n",
        ""),
    "only-the-first-gpu-is-waited-for": (
        DEVICE, "device", "    try {\n      s.make(stream.gpu,",
        "    if (stream.gpu > 0) continue;\n    try {\n      s.make(stream.gpu,"),
    "errors-do-not-name-the-gpu": (
        DEVICE, "device", "      if (!several()) throw;\n", "      throw;\n"),
    "host-arena-for-one-gpu": (
        "src/device/cuda/gpu_state.cpp", "device", "cudaHostAllocPortable", "cudaHostAllocDefault"),
    "gpu-stays-current": (
        GPUS, "device", "  if (before_ != kUnchanged) (void)cudaSetDevice(before_);", ""),
    "gpus-may-differ": (
        GPUS, "device", "if (named(properties) != named(first))", "if (gpus < 0)"),
    "missing-gpus-are-not-counted": (
        GPUS, "device", "if (devices < gpus) return", "if (devices < 0) return"),
    "host-updates-round-once": (
        KERNELS + "host_updates.cpp", "nn", "op.momentum * momentum[i] + decayed",
        "std::fma(op.momentum, momentum[i], decayed)"),
    "kernels-are-not-compared": (
        NN + "training_runner.cpp", "nn",
        "  if (auto same = runner->check_algorithms(); !same) return fail(same.error());\n", ""),
    "wrong-classes-are-let-through": (
        NN + "training_runner.cpp", "nn", "    read_sample(feed, sample, to);\n",
        "    try { read_sample(feed, sample, to); } catch (const std::exception&) {}\n"),
    "any-label-is-an-index": (
        KERNELS + "reductions.cu", "nn", "} else if (label >= classes) {", "} else if (false) {"),
    "sizes-are-not-checked": (
        NN + "program_writer.cpp", "nn",
        "    for (const Operand& operand : operands) check_size(operand);\n", ""),
    "no-convolution-of-our-own": (
        KERNELS + "convolution.cpp", "nn",
        'if (chosen_.empty()) add_algorithm("own", own_workspace);', "(void)own_workspace;"),
    "reused-call-keeps-its-work": (DEVICE, "device", "    *call = HostCall{};\n", ""),
    "products-always-in-tf32": (
        KERNELS + "cublas_product.cpp", "nn", "tf32_ ? CUBLAS_TF32_TENSOR_OP_MATH", 
        "true ? CUBLAS_TF32_TENSOR_OP_MATH"),
    "convolutions-always-in-tf32": (
        KERNELS + "convolution.cpp", "nn", "tf32 ? CUDNN_DEFAULT_MATH", "true ? CUDNN_DEFAULT_MATH"),
    "maximum-for-average": (
        KERNELS + "pooling.cpp", "nn", "CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING",
        "CUDNN_POOLING_MAX"),
    "too-small-a-workspace": (
        KERNELS + "convolution.cu", "nn", "parts == 1 ? 0 : parts * weights_of(s)",
        "parts == 1 ? 0 : (parts - 1) * weights_of(s)"),
    "last-terms-dropped": (
        KERNELS + "convolution.cu", "nn", "(e.depth - 1) / parts + 1", "e.depth / parts"),
    "every-group-sees-the-first": (
        KERNELS + "convolution.cu", "nn", "channel = group * (s.channels / s.groups) + term / taps;",
        "channel = term / taps;"),
    "groups-are-not-told": (
        KERNELS + "convolution.cpp", "nn",
        "    TIDEPOOL_CUDA_CHECK(cudnn().cudnnSetConvolutionGroupCount(get(), shape.groups));\n", ""),
    "gradients-of-the-first-channels": (
        KERNELS + "elementwise.cpp", "nn", "operand(c.p, 0) + op.first_channel * plane,",
        "operand(c.p, 0),"),
    "half-a-warp": (
        KERNELS + "reductions.cu", "nn", "kAllLanes = 0xffffffffU", "kAllLanes = 0x0000ffffU"),
    "adamw-without-barrier": (
        KERNELS + "elementwise.cu", "nn",
        "    root = factors.root;\n  }\n  __syncthreads();", "    root = factors.root;\n  }"),
    "sum-without-barrier": (
        KERNELS + "reductions.cu", "nn",
        "parts[threadIdx.x / 32] = pair;\n  __syncthreads();", "parts[threadIdx.x / 32] = pair;"),
    "tile-overwritten-too-early": (
        KERNELS + "convolution.cu", "nn",
        "    __syncthreads();\n    since_carry += kDepth;", "    since_carry += kDepth;"),
    "product-without-workspace": (
        KERNELS + "cublas_product.cpp", "nn",
        "cublasSetWorkspace_v2(s.cublas(), workspace,",
        "cublasSetWorkspace_v2(s.cublas(), operand<std::byte>(p, 0) + 256,"),
    "later-tokens-are-seen": (
        KERNELS + "attention.cu", "nn", "causal ? row % tokens + 1 : tokens", "tokens"),
    "heads-taken-for-samples": (
        KERNELS + "attention.cpp", "nn", "return by_sample ? m.head : m.sample;",
        "return by_sample ? m.sample : m.head;"),
    "equal-tokens-overwrite-each-other": (
        KERNELS + "embedding.cu", "nn", "if (is_later != 0 || token < 0", "if (token < 0"),
    "tokens-read-too-early": (
        KERNELS + "embedding.cu", "nn",
        "chunk[threadIdx.x] = own < count ? tokens[own] : -1;\n    __syncthreads();",
        "chunk[threadIdx.x] = own < count ? tokens[own] : -1;"),
    "any-token-is-an-index": (
        KERNELS + "embedding.cu", "nn", "const bool known = token >= 0 && token < e.vocabulary;",
        "const bool known = true;"),
    "layer-norm-without-barrier": (
        KERNELS + "layer_norm.cu", "nn",
        "products[threadIdx.y][threadIdx.x] = product;\n  __syncthreads();",
        "products[threadIdx.y][threadIdx.x] = product;"),
    "lstm-sum-without-barrier": (
        KERNELS + "lstm.cu", "nn", "sums[threadIdx.y][threadIdx.x] = sum;\n  __syncthreads();",
        "sums[threadIdx.y][threadIdx.x] = sum;"),
    "workspace-of-another-algorithm": (
        KERNELS + "convolution.cpp", "nn",
        "        chosen(algorithm), workspace, workspace_of(algorithm), &kZero, y_.get(), p[2]));",
        "        chosen(algorithm), workspace, workspace_of(0), &kZero, y_.get(), p[2]));"),
}

SECONDS = 100


def write(name, source, target):
    _, _, old, new = MUTANTS[name]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    if text.count(old) != 1:
        raise SystemExit(f"mutants.py: {name}: its text is {text.count(old)} times in {source}; "
                         "adapt MUTANTS to the source")
    with open(target, "w", encoding="utf-8") as file:
        file.write(f'#line 1 "{source}"\n' + text.replace(old, new))


def run(program, tests, seeds, faulty):
    """0: as it should be; 1: not; 2: the tests could not be run."""
    for seed in seeds:
        environment = dict(os.environ, STANDIN_SEED=seed)
        command = [program, f"--gtest_filter={tests}", "--gtest_fail_fast", "--gtest_color=no"]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True,
                                  timeout=SECONDS, check=False)
        except (subprocess.TimeoutExpired, OSError) as error:
            print(f"seed {seed}: {error}")
            return 2
        begun = re.findall(r"^\[ RUN      \] (\S+)", done.stdout, re.MULTILINE)
        failed = re.findall(r"^\[  FAILED  \] (\S+)", done.stdout, re.MULTILINE)
        if not begun:
            print(f"seed {seed}: no test ran (exit code {done.returncode})")
            return 2
        if done.returncode == 0:
            continue
        by = failed[0].rstrip(",") if failed else begun[-1]
        how = "" if failed else f", which ended with {done.returncode}"
        print(f"found with seed {seed} by {by}{how}")
        return 0 if faulty else 1
    print(f"not found with seeds {', '.join(seeds)}")
    return 1 if faulty else 0


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "list":
        for name, (file, tests, _, _) in MUTANTS.items():
            print(f"{name};{file};{tests}")
        return 0
    if command == "write":
        write(*sys.argv[2:])
        return 0
    if command == "run":
        name, program, tests, *seeds = sys.argv[2:]
        return run(program, tests, seeds, not name.startswith("no-fault"))
    raise SystemExit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
