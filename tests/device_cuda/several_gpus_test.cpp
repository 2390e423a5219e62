// The promises of Device on several GPUs, and plans of several devices on them: values are those of
// the program, faults end in an exception that names the GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/at.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/links.h"
#include "device_cuda/cuda_tag_runner.h"
#include "lower/compose.h"
#include "lower/lower.h"
#include "runtime/executor.h"
#include "support/cuda.h"
#include "support/fault_runs.h"
#include "support/parallel_program.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::CudaTagRunner;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TagRunner;

class SeveralGpus : public testing::SeveralGpusTest {
 protected:
  static CudaDeviceOptions options() {
    CudaDeviceOptions o;
    o.libraries = false;
    return o;
  }
  static int gpus() { return GetParam(); }

  /// Each GPU has a compute stream, one out and one in, in this order; then comes that of the host.
  static DeviceConfig config(Bytes device = 1 << 16, Bytes host = 1 << 20) {
    DeviceConfig c{device, host, {}};
    for (SpaceId g = 0; g < gpus(); ++g) {
      if (g > 0) c.arenas.insert(c.arenas.begin(), c.arenas[0]);
      for (const auto kind : {StreamKind::compute, StreamKind::copy, StreamKind::copy}) {
        c.streams.emplace_back(kind, g);
      }
    }
    c.streams.emplace_back(StreamKind::host);
    return c;
  }
  static StreamId compute(SpaceId gpu) { return 3 * gpu; }
  static StreamId out(SpaceId gpu) { return 3 * gpu + 1; }
  static StreamId in(SpaceId gpu) { return 3 * gpu + 2; }
  static SpaceId host() { return gpus(); }
};

TEST_P(SeveralGpus, EachHasMemoryOfItsOwnAndAllShareTheHosts) {
  CudaDevice device(options());
  device.open(config());
  std::byte* const memory = device.arena(host());
  for (Bytes i = 0; i < 4096 * gpus(); ++i) memory[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (SpaceId g = 0; g < host(); ++g) device.copy(in(g), {g, 512}, {host(), g * 4096}, 4096);
  device.synchronize();
  // Back in the other order, each behind those of the GPU before.
  Device::EventId before = kNone;
  for (SpaceId g = 0; g < host(); ++g) {
    if (before != kNone) device.wait(out(g), before);
    const Bytes to = (1 << 19) + (host() - 1 - g) * 4096;
    device.copy(out(g), {host(), to}, {g, 512}, 4096);
    before = device.create_event(out(g));
    device.record(before, out(g));
  }
  device.synchronize();
  for (SpaceId g = 0; g < host(); ++g) {
    const std::byte* const back = memory + (1 << 19) + (host() - 1 - g) * 4096;
    EXPECT_EQ(std::memcmp(memory + g * 4096, back, 4096), 0) << "GPU " << g;
  }
}

TEST_P(SeveralGpus, AStreamTakesCopiesOfOtherGpusInItsOrder) {
  CudaDevice device(options());
  device.open(config());
  std::byte* const memory = device.arena(host());
  for (int round = 0; round < 10; ++round) {
    memory[0] = static_cast<std::byte>(round + 1);
    // From GPU to GPU, by the host.
    for (SpaceId g = 0; g < host(); ++g) {
      device.copy(in(0), {g, 0}, {host(), g * 512}, 64);
      device.copy(in(0), {host(), (g + 1) * 512}, {g, 0}, 64);
    }
    device.synchronize();
    EXPECT_EQ(memory[gpus() * 512], static_cast<std::byte>(round + 1));
  }
}

TEST_P(SeveralGpus, TimesOfAllAreOnOneClock) {
  CudaDevice device(options());
  device.open(config());
  constexpr Nanos kStep{2'000'000'000};  // clocks that are not the same differ by more
  Nanos before = device.now();
  for (SpaceId g = 0; g < host(); ++g) {
    const auto event = device.create_timed_event(compute(g));
    device.record(event, compute(g));
    const Nanos time = device.synchronize(event);
    EXPECT_GE(time, before - kStep);
    EXPECT_LE(time, device.now() + kStep);
    before = time;
  }
}

TEST_P(SeveralGpus, CopiesFromOneToAnotherAreRefused) {
  CudaDevice device(options());
  device.open(config());
  EXPECT_THROW(device.copy(out(0), {1, 0}, {0, 0}, 64), DeviceError);
}

TEST_P(SeveralGpus, TheFingerprintIsThatOfEachOfThem) {
  CudaDevice device(options());
  const std::string of_one = device.fingerprint();
  device.open(config());
  EXPECT_EQ(device.fingerprint(), of_one);
}

TEST_P(SeveralGpus, LinksTogetherAreMeasuredToo) {
  const LinkMeasurement links = measure_links(64 * kKiB, 8 * kMiB, gpus());
  EXPECT_GT(links.to_host_both, 0);
  EXPECT_GT(links.to_device_both, 0);
  EXPECT_GT(links.to_host_all, 0);
  EXPECT_GT(links.to_device_all, 0);
}

// ---- Plans

struct ParallelCase {
  testing::ParallelProgram program;
  Plan plan;
};

/// Its kernels do not ask for the iteration, so that graphs give the same values.
ParallelCase random_case(std::uint64_t seed, int gpus) {
  Random random(seed);
  ParallelCase c{testing::ParallelTraining(static_cast<int>(1 + random.below(4))).on(gpus), {}};
  const Program& part = c.program.part;
  const Machine one = testing::byte_a_nanosecond(512);
  Lowering lowering(part, one);
  const Bytes least = smallest_budget(part, 512).bytes;
  const auto lowered =
      lowering.lower(testing::random_strategy(part, lowering.index(), random.uniform(), seed),
                     {least + least / 4, 0});
  EXPECT_TRUE(lowered) << lowered.error().message;
  std::vector<std::int32_t> before;
  for (std::size_t t = 0; t < part.tensors.size(); ++t) {
    before.push_back(static_cast<std::int32_t>(random.below(lowered->steps.size() + 1)));
  }
  const Machine machine = with_devices(one, gpus);
  auto composed =
      compose({part, lowered->plan, c.program.whole, c.program.replication, machine}, before);
  EXPECT_TRUE(composed) << composed.error().message;
  c.plan = std::move(composed->plan);
  return c;
}

void run_in_order(const ParallelCase& c, std::int64_t iterations, TagRunner& meaning) {
  testing::run_in_order(c.program.whole, least_workspace_algorithms(c.program.whole), iterations,
                        meaning);
}

class PlansOnSeveralGpus : public SeveralGpus {
 protected:
  template <class Body>
  static void for_each_case(std::uint64_t count, Body body) {
    for (std::uint64_t seed = 0; seed < count; ++seed) {
      SCOPED_TRACE(seed);
      body(random_case(seed, gpus()), seed);
    }
  }
  static void expect_right(const ParallelCase& c, std::int64_t iterations,
                           const CudaTagRunner& runner) {
    TagRunner meaning(c.program.whole);
    run_in_order(c, iterations, meaning);
    EXPECT_EQ(runner.seen(), meaning.seen());
    EXPECT_EQ(runner.final_values(), meaning.final_values());
  }
  /// Right, at this speed; or the error's message.
  static std::string run(const ParallelCase& c, const CudaDeviceOptions& how) {
    CudaDevice device(how);
    CudaTagRunner runner(c.program.whole);
    try {
      Executor executor(c.program.whole, c.plan, device, runner);
      executor.enter();
      executor.run(3);
      executor.run(2);
      executor.exit();
    } catch (const DeviceError& error) {
      EXPECT_TRUE(runner.final_values().empty()) << "no value of a broken run is handed out";
      return error.what();
    }
    expect_right(c, 5, runner);
    return {};
  }
};

TEST_P(PlansOnSeveralGpus, ValuesAreThoseOfTheProgram) {
  for_each_case(12, [](const ParallelCase& c, std::uint64_t) { EXPECT_EQ(run(c, options()), ""); });
}

TEST_P(PlansOnSeveralGpus, LateCopiesChangeNoByte) {
  for_each_case(4, [](const ParallelCase& c, std::uint64_t seed) {
    CudaDeviceOptions o = options();
    o.faults.most_late = Nanos{200'000};
    o.faults.seed = seed;
    EXPECT_EQ(run(c, o), "");
  });
}

TEST_P(PlansOnSeveralGpus, GraphsOfAllGiveTheSameValues) {
  for_each_case(6, [](const ParallelCase& c, std::uint64_t seed) {
    CudaDevice device(options());
    CudaTagRunner runner(c.program.whole);
    Executor executor(c.program.whole, c.plan, device, runner);
    executor.enter();
    executor.run(1);
    const RunReport report = executor.run_graphs(7, 1 + static_cast<std::int64_t>(seed % 3));
    EXPECT_EQ(report.iterations, 7);
    executor.exit();
    expect_right(c, 8, runner);
  });
}

TEST_P(PlansOnSeveralGpus, AFailedCopyOfAnyOfThemEndsTheRunAndNamesTheGpu) {
  const ParallelCase c = random_case(1, gpus());
  const auto copies = [&](bool to_host) {
    return std::ranges::count_if(c.plan.steady.instructions, [&](const Instruction& x) {
      return x.kind == InstructionKind::copy &&
             (c.plan.kind_of(x.to) == SpaceKind::host) == to_host;
    });
  };
  for (const bool to_host : {true, false}) {
    // Some of each GPU's, in the second iteration.
    for (std::int64_t k = 0; k < copies(to_host); ++k) {
      CudaDeviceOptions o = options();
      o.faults.fail_copy = {copies(to_host) + k,
                            to_host ? CopyRoute::to_host : CopyRoute::to_device};
      EXPECT_THAT(run(c, o),
                  AllOf(StartsWith("GPU "),
                        HasSubstr(to_host ? "to the host failed" : "to the device failed")));
    }
  }
}

TEST_P(PlansOnSeveralGpus, AFailedLaunchOfAnyOfThemEndsTheRunAndNamesTheGpu) {
  const ParallelCase c = random_case(2, gpus());
  for (std::int64_t number = 0; number < 24; number += 3) {
    CudaDeviceOptions o = options();
    o.faults.fail_launch = 20 + number;
    EXPECT_THAT(run(c, o), AllOf(StartsWith("GPU "), HasSubstr("a kernel failed")));
  }
}

TEST_P(PlansOnSeveralGpus, TimesOfOpsAreThoseOfTheirGpu) {
  const ParallelCase c = random_case(3, gpus());
  CudaDevice device(options());
  CudaTagRunner runner(c.program.whole);
  Executor executor(c.program.whole, c.plan, device, runner);
  executor.enter();
  executor.run(1);
  executor.record_timings();
  executor.run(2);
  ASSERT_EQ(executor.timings().size(), 2U);
  constexpr Nanos kStep{2000};  // of a float
  for (const auto& iteration : executor.timings()) {
    std::vector<Nanos> before(at(gpus()), Nanos{0});
    for (std::size_t i = 0; i < iteration.size(); ++i) {
      const Stream& stream = c.plan.streams[at(c.plan.steady.instructions[i].stream)];
      if (stream.kind != StreamKind::compute) continue;
      EXPECT_GE(iteration[i].start, before[at(stream.device)] - kStep);
      EXPECT_GT(iteration[i].end, iteration[i].start);
      before[at(stream.device)] = iteration[i].end;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TwoGpus, SeveralGpus, ::testing::Values(2));
INSTANTIATE_TEST_SUITE_P(FourGpus, SeveralGpus, ::testing::Values(4));
INSTANTIATE_TEST_SUITE_P(TwoGpus, PlansOnSeveralGpus, ::testing::Values(2));
INSTANTIATE_TEST_SUITE_P(FourGpus, PlansOnSeveralGpus, ::testing::Values(4));

}  // namespace
}  // namespace tidepool
