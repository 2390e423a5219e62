// What the CUDA device does where something goes wrong, or differs from machine to machine: the
// stand-in can be told to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "base/at.h"
#include "cuda_standin/standin.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nvml.h"
#include "device/cuda/stream.h"
#include "device_cuda/cuda_tag_runner.h"
#include "lower/lower.h"
#include "runtime/executor.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::CudaTagRunner;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

constexpr StreamId kCompute = 0, kHost = 1;
constexpr Nanos kHour{3'600'000'000'000};

CudaDeviceOptions without_libraries() {
  CudaDeviceOptions options;
  options.libraries = false;
  return options;
}

struct SmallDevice : CudaDevice {
  SmallDevice() : CudaDevice(without_libraries()) {
    open({4096, 4096, {StreamKind::compute, StreamKind::host}});
  }
};

/// Its kernels do not ask for the iteration, which a graph cannot change.
Program repeatable_program(std::uint64_t seed) {
  Program program = testing::random_program(seed);
  for (Op& op : program.ops) {
    if (op.place == OpPlace::device) op.random = false;
  }
  return program;
}

Machine machine_of_tests() {
  Machine machine = testing::random_machine(3);
  machine.set_alignment(512);
  return machine;
}

/// With everything kept.
Plan kept_plan(const Program& program) {
  const Machine machine = machine_of_tests();
  Lowering lowering(program, machine);
  auto lowered = lowering.lower(
      keep_everything(program, lowering.index(), least_workspace_algorithms(program)),
      {Bytes{1} << 30, 0});
  EXPECT_TRUE(lowered);
  return std::move(lowered->plan);
}

Work failing_host_work() {
  Work work;
  work.run = [](void*, std::int64_t, NativeStream) { throw std::runtime_error("bad labels"); };
  return work;
}

TEST(CudaDeviceOnStandin, ARecordBeforeACaptureKeepsItsTime) {
  SmallDevice device;
  const auto event = device.create_timed_event();
  const Nanos before = device.now();
  device.record(event, kCompute);
  device.synchronize();
  device.begin_capture();
  device.end_capture();
  EXPECT_GE(device.synchronize(event), before);
}

TEST(CudaDeviceOnStandin, AnEventOfACaptureIsNoWaitOutside) {
  SmallDevice device;
  const auto event = device.create_event();
  device.begin_capture();
  device.record(event, kHost);
  device.wait(kCompute, event);
  device.end_capture();
  device.wait(kCompute, event);
  EXPECT_EQ(device.synchronize(event), Nanos{0});
  device.record(event, kHost);
  device.wait(kCompute, event);
  device.synchronize();
}

TEST(CudaDeviceOnStandin, DestroyedGraphsAreGone) {
  SmallDevice device;
  const int before = standin::live_graphs();
  device.begin_capture();
  const auto first = device.end_capture();
  device.begin_capture();
  device.end_capture();
  EXPECT_EQ(standin::live_graphs(), before + 2);
  device.destroy_graph(first);
  EXPECT_EQ(standin::live_graphs(), before + 1);
}

TEST(CudaDeviceOnStandin, WhatFailedOnTheHostIsToldBeforeTheErrorItCaused) {
  const std::vector<std::pair<const char*, void (*)(CudaDevice&)>> calls = {
      {"cudaStreamSynchronize", [](CudaDevice& d) { d.synchronize(); }},
      {"cudaEventSynchronize",
       [](CudaDevice& d) {
         const auto event = d.create_timed_event();
         d.record(event, kCompute);
         d.synchronize(event);
       }},
      {"cudaEventRecord", [](CudaDevice& d) { d.record(d.create_event(), kCompute); }},
      {"cudaMemcpyAsync",
       [](CudaDevice& d) {
         d.copy(kCompute, {0, 0}, {1, 0}, 64);
       }},
      {"cudaLaunchHostFunc", [](CudaDevice& d) { d.launch(kHost, failing_host_work()); }},
  };
  for (const auto& [function, call] : calls) {
    SCOPED_TRACE(function);
    SmallDevice device;
    device.launch(kHost, failing_host_work());
    // So that it has run, without the device having been asked.
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    standin::fail_call(function, cudaErrorIllegalAddress, 0, true);
    try {
      call(device);
      ADD_FAILURE() << "no exception";
    } catch (const DeviceError& error) {
      EXPECT_STREQ(error.what(), "bad labels");
    }
    standin::forget_failures();
  }
}

TEST(CudaDeviceOnStandin, ACopyWithinTheHostAfterHostWorkIsThatCopy) {
  SmallDevice device;
  int ran = 0;
  Work work;
  work.context = &ran;
  work.run = [](void* count, std::int64_t, NativeStream) { ++*static_cast<int*>(count); };
  device.launch(kHost, work);
  device.synchronize();
  std::byte* const host = device.host_arena();
  host[0] = std::byte{5};
  host[512] = std::byte{6};
  device.copy(kHost, {1, 512}, {1, 0}, 1);
  device.synchronize();
  EXPECT_EQ(host[512], std::byte{5});
  EXPECT_EQ(ran, 1);
}

TEST(CudaDeviceOnStandin, CudasOwnErrorsAreToldWithCallAndPlace) {
  SmallDevice device;
  standin::fail_call("cudaStreamSynchronize", cudaErrorIllegalAddress, 0, true);
  try {
    device.synchronize();
    ADD_FAILURE() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("cudaStreamSynchronize"), HasSubstr("src/device/cuda/cuda_device"),
                      HasSubstr("cudaErrorIllegalAddress")));
  }
  standin::forget_failures();
}

TEST(CudaDeviceOnStandin, TheFingerprintHasWhatBitsDependOn) {
  const std::string plain = CudaDevice({}).fingerprint();
  EXPECT_THAT(plain, ::testing::ContainsRegex("cuDNN 9\\.[0-9]+\\.[0-9]+ for CUDA 1[0-9]\\."));
  ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  EXPECT_EQ(CudaDevice({}).fingerprint(), plain + "; NVIDIA_TF32_OVERRIDE=0");
  ::unsetenv("NVIDIA_TF32_OVERRIDE");
}

TEST(CudaDeviceOnStandin, PowerIsThatOfTheGpuAtTheSameBus) {
  cuda::EnergyMeter meter(0);
  ASSERT_TRUE(meter.available()) << meter.why_not();
  meter.start();
  const cuda::EnergyReading reading = meter.stop();
  EXPECT_EQ(reading.maximum_watts, 400) << "not the GPU that NVML calls 0";
}

TEST(CudaDeviceOnStandin, VersionsAreToldWhateverIsMissing) {
  EXPECT_THAT(cuda_versions().needed, AllOf(HasSubstr("driver 5"), HasSubstr("cuDNN 9")));
  EXPECT_THAT(cuda_versions().found,
              AllOf(HasSubstr("driver 999.12.34 for CUDA"), HasSubstr("cuDNN 9.")));
  standin::behaviour().driver_version = 11080;
  EXPECT_THAT(why_no_cuda(), HasSubstr("too old: it is for CUDA 11.8"));
  standin::behaviour().driver_version = 0;
  const int gpus = std::exchange(standin::behaviour().gpus, 0);
  EXPECT_THAT(why_no_cuda(), HasSubstr("finds no GPU"));
  standin::behaviour().gpus = gpus;
}

/// A random program whose guards change in every other iteration, so that graphs are captured anew.
struct ChangingGuards : CudaTagRunner {
  using CudaTagRunner::CudaTagRunner;
  std::uint32_t guards(std::int64_t iteration) override {
    return iteration / 4 % 2 == 0 ? ~0U : ~0U >> 1;
  }
};

TEST(CudaDeviceOnStandin, GraphsCapturedAnewKeepTheirTimesAndFreeTheOld) {
  constexpr std::int64_t kIterations = 24, kPerGraph = 2;
  const Program program = repeatable_program(3);
  const Machine machine = machine_of_tests();
  Lowering lowering(program, machine);
  const Bytes least = smallest_budget(program, 512).bytes;
  const Strategy strategy = testing::random_strategy(program, lowering.index(), 0.7, 3);
  const auto lowered = lowering.lower(strategy, {least + least / 4, 0});
  ASSERT_TRUE(lowered);
  const int before = standin::live_graphs();
  CudaDevice device(without_libraries());
  ChangingGuards runner(program);
  Executor executor(program, lowered->plan, device, runner);
  executor.enter();
  const RunReport report = executor.run_graphs(kIterations, kPerGraph);
  EXPECT_EQ(standin::live_graphs(), before + 1);
  ASSERT_EQ(report.iteration_times.size(), static_cast<std::size_t>(kIterations));
  EXPECT_THAT(report.iteration_times, Each(AllOf(Gt(Nanos{0}), Lt(kHour))));
  executor.exit();
}

TEST(CudaDeviceOnStandin, TheFirstIterationsOfAllAreNotCaptured) {
  const Program program = repeatable_program(3);
  const Plan plan = kept_plan(program);
  /// Launches on compute streams: each once for a graph, once an iteration without.
  struct Counting : CudaTagRunner {
    using CudaTagRunner::CudaTagRunner;
    std::vector<std::int64_t> iterations;
    void launch(const OpCall& call, NativeStream stream) override {
      if (stream != nullptr && call.op == first) iterations.push_back(call.iteration);
      CudaTagRunner::launch(call, stream);
    }
    OpId first = 0;
  };
  const auto launched = [&](std::int64_t count, std::int64_t per_graph) {
    CudaDevice device(without_libraries());
    Counting runner(program);
    while (program.ops[static_cast<std::size_t>(runner.first)].place == OpPlace::host) {
      ++runner.first;
    }
    Executor executor(program, plan, device, runner);
    executor.enter();
    EXPECT_EQ(executor.run_graphs(count, per_graph).iterations, count);
    EXPECT_EQ(executor.run_graphs(per_graph, per_graph).iterations, per_graph);
    executor.exit();
    return runner.iterations;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(launched(6, 2), ElementsAre(0, 1, 0, 1));  // two plain, then one capture
  EXPECT_THAT(launched(7, 3), ElementsAre(0, 0, 1, 2));  // one plain
  EXPECT_THAT(launched(2, 2), ElementsAre(0, 1, 0, 1));  // the capture is the second call's
  EXPECT_THAT(launched(1, 2), ElementsAre(0, 0, 1));
}

/// Ops that a guard left out so far run when it lets them.
TEST(CudaDeviceOnStandin, NoOpIsCapturedThatHasNotRun) {
  struct LateGuards : CudaTagRunner {
    explicit LateGuards(const Program& program) : CudaTagRunner(program), ran(program.ops.size()) {}
    std::uint32_t guards(std::int64_t iteration) override { return iteration < 4 ? 0 : ~0U; }
    void launch(const OpCall& call, NativeStream stream) override {
      if (stream != nullptr) {
        const bool capturing = standin::is_capturing(cuda::CudaStream::from(stream).stream());
        EXPECT_TRUE(!capturing || ran[at(call.op)]) << "op " << call.op;
        ran[at(call.op)] = true;
        captured += capturing ? 1 : 0;
      }
      CudaTagRunner::launch(call, stream);
    }
    std::vector<bool> ran;
    int captured = 0;
  };
  int guarded = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Program program = repeatable_program(seed);
    for (const Op& op : program.ops) {
      guarded += op.place == OpPlace::device && op.guard != kNone ? 1 : 0;
    }
    const Plan plan = kept_plan(program);
    CudaDevice device(without_libraries());
    LateGuards runner(program);
    Executor executor(program, plan, device, runner);
    executor.enter();
    EXPECT_EQ(executor.run_graphs(12, 2).iterations, 12);
    EXPECT_GT(runner.captured, 0);
  }
  EXPECT_GT(guarded, 0);
}

TEST(CudaDeviceOnStandin, TwoExecutorsTakeTurnsOnOneDevice) {
  CudaDevice device(without_libraries());
  const int before = standin::allocations();
  DeviceConfig config;
  std::vector<Program> programs;
  std::vector<Plan> plans;
  for (const std::uint64_t seed : {4, 5}) {
    programs.push_back(repeatable_program(seed));
    for (Op& op : programs.back().ops) op.random = false;
    plans.push_back(kept_plan(programs.back()));
    config = plans.size() == 1 ? device_config(plans[0]) : joined(config, device_config(plans[1]));
  }
  const OpenDevice open = opened(device, config);
  std::vector<std::unique_ptr<CudaTagRunner>> runners;
  std::vector<std::unique_ptr<Executor>> executors;
  for (std::size_t i = 0; i < 2; ++i) {
    runners.push_back(std::make_unique<CudaTagRunner>(programs[i]));
    executors.push_back(std::make_unique<Executor>(programs[i], plans[i], open, *runners[i]));
  }
  // The runner of tests loads the first values again each time.
  for (int round = 0; round < 3; ++round) {
    for (auto& executor : executors) {
      executor->enter();
      executor->run(2);
      executor->exit();
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    testing::TagRunner meaning(programs[i]);
    testing::run_in_order(programs[i], least_workspace_algorithms(programs[i]), 2, meaning);
    EXPECT_EQ(runners[i]->final_values(), meaning.final_values());
  }
  EXPECT_LE(standin::allocations(), before + 2);
}

}  // namespace
}  // namespace tidepool
