#include "runtime/reactive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/fake/fake_device.h"
#include "ir/load_profile.h"
#include "runtime/profiler.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/tag_runner.h"

namespace tidepool {
namespace {

using testing::random_program;
using testing::run_in_order;
using testing::TagRunner;

constexpr std::int64_t kReactiveIterations = 3;

TEST(Reactive, ValuesAreThoseOfTheProgramAtEveryBudgetThatCanRunIt) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed, {5, 64});
    const auto algorithms = least_workspace_algorithms(program);
    TagRunner meaning(program);
    run_in_order(program, algorithms, kReactiveIterations, meaning);
    const Bytes least = smallest_budget(program, 64).bytes;
    for (const Bytes budget : {least, least + least / 4, 2 * least, 10 * least}) {
      FakeDevice device(FakeScript{}, 64);
      TagRunner runner(program);
      Reactive reactive(program, algorithms, {budget, Reactive::enough_host_bytes(program, 64)},
                        device, runner);
      reactive.enter();
      reactive.run(kReactiveIterations);
      reactive.exit();
      EXPECT_LE(reactive.arena_peak(), budget);
      EXPECT_EQ(runner.seen(), meaning.seen());
      EXPECT_EQ(runner.final_values(), meaning.final_values());
      EXPECT_EQ(reactive.timings().size(), static_cast<std::size_t>(kReactiveIterations));
    }
  }
}

TEST(Reactive, ATooSmallHostArenaIsATypedErrorThatNamesTheTensor) {
  const Program program = random_program(3, {5, 64});
  const auto algorithms = least_workspace_algorithms(program);
  FakeDevice device(FakeScript{}, 64);
  TagRunner runner(program);
  Reactive reactive(program, algorithms, {smallest_budget(program, 64).bytes, 64}, device, runner);
  try {
    reactive.enter();
    reactive.run(1);
    FAIL() << "nothing was thrown";
  } catch (const HostArenaFull& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("the host arena of 64 B"),
                                               ::testing::HasSubstr("tensor '")));
  }
}

TEST(Reactive, InsideATightHostBudgetItIsRightOrSaysThatTheArenaIsFull) {
  int right = 0;
  int full = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed, {5, 64});
    const auto algorithms = least_workspace_algorithms(program);
    TagRunner meaning(program);
    run_in_order(program, algorithms, kReactiveIterations, meaning);
    const Bytes least = smallest_budget(program, 64).bytes;
    const Bytes enough = Reactive::enough_host_bytes(program, 64);
    for (const Bytes host : {enough - 64, enough * 3 / 4, enough / 2, enough / 4}) {
      FakeDevice device(FakeScript{}, 64);
      TagRunner runner(program);
      try {
        Reactive reactive(program, algorithms, {least + least / 2, host}, device, runner);
        reactive.enter();
        reactive.run(kReactiveIterations);
        reactive.exit();
      } catch (const HostArenaFull&) {
        ++full;
        continue;
      }
      ++right;
      EXPECT_EQ(runner.seen(), meaning.seen());
      EXPECT_EQ(runner.final_values(), meaning.final_values());
    }
  }
  EXPECT_GT(right, 0);
  EXPECT_GT(full, 0);
}

TEST(ApplyOpTimings, TakesTheMedianOfEachOpFromItsOwnStart) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 64);
  b.host("feed", {{x, write}}, Nanos{1});
  b.device("A", {{x, read}}, Nanos{2});
  b.device("B", {{x, read}}, Nanos{3});
  Program program = b.build();
  const auto timing = [](int start, int end) { return OpTiming{Nanos{start}, Nanos{end}}; };
  const std::vector<std::int32_t> algorithms{0, 0, 0};
  apply_op_timings(algorithms, {}, program);
  EXPECT_EQ(program.ops[1].algorithms[0].time, Nanos{2}) << "nothing was measured";
  apply_op_timings(algorithms,
                   {{timing(0, 9), timing(10, 20), timing(50, 57)},
                    {timing(60, 61), timing(70, 100), timing(200, 205)},
                    {timing(300, 301), timing(310, 330), timing(400, 500)}},
                   program);
  EXPECT_EQ(program.ops[0].algorithms[0].time, Nanos{1}) << "host ops are not measured";
  EXPECT_EQ(program.ops[1].algorithms[0].time, Nanos{20});
  EXPECT_EQ(program.ops[2].algorithms[0].time, Nanos{7});
}

TEST(Segments, NeighbouringFreeRangesBecomeOne) {
  Segments segments(1000, 8);
  const auto a = segments.allocate(100);
  const auto b = segments.allocate(200);
  const auto c = segments.allocate(300);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(*b, 104);
  segments.free(*a);
  segments.free(*c);
  EXPECT_EQ(segments.largest_free(), 1000 - 304);
  segments.free(*b);
  EXPECT_EQ(segments.largest_free(), 1000);
  EXPECT_EQ(segments.used(), 0);
  EXPECT_FALSE(segments.allocate(1001));
}

}  // namespace
}  // namespace tidepool
