#include "planners/dqn/environment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lower/budget.h"
#include "support/program_builder.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using enum AccessMode;

constexpr Nanos kSecond{1'000'000'000};

/// Figure 4 of the paper: nodes 1 and 2 allocate and write x0, 3 reads it, 4 and 5 do something
/// else, and so on to the op that reads x0 again. Every op takes a second, a copy of x0 one and a
/// half. Node 4 needs `workspace` bytes more.
struct Figure4 {
  explicit Figure4(Bytes workspace) {
    testing::ProgramBuilder b("figure 4");
    const TensorId x0 = b.tensor("x0", 1500);
    const TensorId w = b.tensor("w", 1, true);
    b.device("write", {{x0, write}}, kSecond);
    b.device("read", {{x0, read}}, kSecond);
    b.device("fourth", {{w, read}}, kSecond, workspace);
    b.device("fifth", {{w, read}}, kSecond);
    b.device("peak", {{w, read}}, kSecond, 1000);
    for (int i = 0; i < 4; ++i) b.device(fmt::format("backward {}", i), {{w, read}}, kSecond);
    b.device("read again", {{x0, read}, {w, update}}, kSecond);
    program = b.build();
    machine = testing::byte_a_nanosecond();
    machine.to_host() = machine.to_device() = {1000, Nanos{0}};
  }

  Program program;
  Machine machine;
};

/// Memory for x0 and w, so that "peak" does not fit beside x0.
constexpr Bytes kLimit = 1501;

double offload_in_the_third_node(dqn::Environment& environment) {
  environment.begin(kLimit);
  EXPECT_EQ(environment.state().current, 3);
  EXPECT_THAT(environment.state().valid, Contains(3));
  return environment.act(3);
}

TEST(Figure4, AnOffloadMovesTheAgentToTheNodeAfterItsEnd) {
  const Figure4 example(0);
  const Lowering lowering(example.program, example.machine);
  dqn::Environment environment(lowering, std::vector<std::int32_t>(10, 0), kLimit,
                               {.remove = false});
  const double reward = offload_in_the_third_node(environment);
  EXPECT_TRUE(environment.feasible());
  EXPECT_EQ(environment.state().current, 5);
  EXPECT_EQ(reward, 0);
}

TEST(Figure4, WhereMemoryIsAtTheLimitItIsWaitedFor) {
  const Figure4 example(100);
  const Lowering lowering(example.program, example.machine);
  dqn::Environment environment(lowering, std::vector<std::int32_t>(10, 0), kLimit,
                               {.remove = false});
  const double reward = offload_in_the_third_node(environment);
  EXPECT_TRUE(environment.feasible());
  EXPECT_EQ(environment.state().current, 4);
  EXPECT_DOUBLE_EQ(reward, -0.05) << "half a second of ten";
}

}  // namespace
}  // namespace tidepool
