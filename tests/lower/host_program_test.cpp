// What a plan does with host memory, as a program: by hand, and of random plans.
#include "lower/host_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at.h"
#include "lower/time_plan.h"
#include "support/program_builder.h"
#include "support/random_plan.h"
#include "support/sanitized.h"
#include "support/three_tiers.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A writes x, which leaves while B runs and comes back for C.
struct Away {
  Program program = make();
  Machine machine = with_file_tier(testing::byte_a_nanosecond(64), {{1e9, {}}, {1e9, {}}});
  Lowering lowering{program, machine};
  Lowered lowered = *lowering.lower(swapped(), {1024 + 64, 0});

  static Program make() {
    using enum AccessMode;
    testing::ProgramBuilder b;
    const TensorId x = b.tensor("x", 1000);
    const TensorId y = b.tensor("y", 64);
    b.device("A", {{x, write}}, Nanos{100});
    b.device("B", {{y, write}}, Nanos{5000}, 1024);
    b.device("C", {{x, read}, {y, read}}, Nanos{100});
    return b.build();
  }
  [[nodiscard]] Strategy swapped() const {
    Strategy s = keep_everything(program, lowering.index(), {0, 0, 0});
    s.gaps[0] = Decision::swap;
    return s;
  }
};

TEST(HostProgram, CopiesAreTheAccessesOfStays) {
  const Away away;
  const auto host = host_program(away.program, away.lowered.plan, away.machine);
  ASSERT_TRUE(host) << host.error().message;
  const Program& p = host->program;
  ASSERT_EQ(p.tensors.size(), 1u);
  EXPECT_EQ(p.tensors[0].bytes, 1000);
  EXPECT_FALSE(p.tensors[0].persistent);
  EXPECT_THAT(host->tensor_of, ElementsAre(TensorId{0}));
  ASSERT_EQ(p.ops.size(), 2u);
  ASSERT_EQ(p.ops[0].accesses.size(), 1u);
  EXPECT_EQ(p.ops[0].accesses[0].mode, AccessMode::write) << "the copy out";
  EXPECT_EQ(p.ops[1].accesses[0].mode, AccessMode::read) << "the copy in";
  // The copy out begins when A has run, the copy in when it can be back in time or earlier.
  const TimedPlan timed = time_plan(away.program, away.lowered.plan, away.machine);
  const auto start = [&](std::size_t op) {
    return timed.steps[at(host->instruction_of[op])].start;
  };
  EXPECT_EQ(p.ops[0].algorithms[0].time, start(1) - start(0));
  EXPECT_EQ(p.ops[0].algorithms[0].time + p.ops[1].algorithms[0].time, timed.iteration_time);
}

TEST(HostProgram, TheMachineBelowHasTheLinksOfTheFileAndItsBlocks) {
  Machine m = with_file_tier(*find_machine("gtx1080ti"),
                             {{5e8, Nanos{7}}, {6e8, Nanos{9}}, false, 0, 4096});
  const Machine pair = host_and_file(m);
  EXPECT_EQ(inconsistency(pair), "");
  EXPECT_EQ(pair.to_host().bytes_per_second, 5e8);
  EXPECT_EQ(pair.to_device().latency, Nanos{9});
  EXPECT_FALSE(pair.duplex());
  EXPECT_EQ(pair.alignment(), 4096);
  m = with_file_tier(*find_machine("gtx1080ti"), {{5e8, {}}, {6e8, {}}, true, 0, 64});
  EXPECT_TRUE(host_and_file(m).duplex());
  EXPECT_EQ(host_and_file(m).spaces[0].alignment, 512) << "the host's own is larger";
  EXPECT_EQ(host_and_file(m).spaces[1].alignment, 64);
}

TEST(HostProgram, OfRandomPlansIsValidAndInAnOrderThatKeepsAllWaits) {
  for (std::uint64_t seed = 0; seed < testing::usual_or<std::uint64_t>(60, 15); ++seed) {
    SCOPED_TRACE(seed);
    const auto c = testing::random_plan(seed);
    ASSERT_TRUE(c);
    if (c->lowered.plan.host_bytes() == 0) continue;
    const Machine machine = testing::with_random_tier(c->machine, seed);
    const auto host = host_program(c->program, c->lowered.plan, machine);
    ASSERT_TRUE(host) << host.error().message;
    EXPECT_TRUE(validate(host->program));
    std::vector<std::size_t> position(host->order.size());
    for (std::size_t i = 0; i < host->order.size(); ++i) position[at(host->order[i])] = i;
    const auto& list = c->lowered.plan.steady.instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (const Wait& w : list[i].waits) {
        if (w.iteration != 0) continue;
        EXPECT_LT(position[at(w.index)], position[i]);
      }
    }
  }
}

TEST(HostProgram, APlanWithoutHostBytesHasNone) {
  const Away away;
  const Strategy kept = keep_everything(away.program, away.lowering.index(), {0, 0, 0});
  Lowering lowering(away.program, away.machine);
  const auto lowered = lowering.lower(kept, {1 << 20, 0});
  ASSERT_TRUE(lowered);
  const auto host = host_program(away.program, lowered->plan, away.machine);
  ASSERT_FALSE(host);
  EXPECT_THAT(host.error().message, HasSubstr("uses no host memory"));
}

}  // namespace
}  // namespace tidepool
