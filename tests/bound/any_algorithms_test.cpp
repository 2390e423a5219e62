#include "bound/any_algorithms.h"

#include <gtest/gtest.h>

#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;

Program any_program(std::vector<Algorithm> algorithms) {
  testing::ProgramBuilder b("any");
  const TensorId x = b.tensor("x", 64);
  b.device("op", {{x, write}}, Nanos{1});
  b.last().algorithms = std::move(algorithms);
  b.host("collect", {{x, read}});
  return b.build();
}

TEST(AnyAlgorithms, HasTheLeastTimeAndTheLeastWorkspaceWhicheverHasThem) {
  const Program p = with_best_algorithms(any_program({{"slow", Nanos{100}, 10, true},
                                                      {"fast", Nanos{50}, 300, true},
                                                      {"chance", Nanos{40}, 400, false}}));
  ASSERT_EQ(p.ops[0].algorithms.size(), 1U);
  EXPECT_EQ(p.ops[0].algorithms[0].time, Nanos{40});
  EXPECT_EQ(p.ops[0].algorithms[0].workspace, 10);
  EXPECT_TRUE(p.ops[0].algorithms[0].deterministic);
}

TEST(AnyAlgorithms, WhatNobodyHasMeasuredDoesNotCount) {
  const Program p = any_program({{"measured", Nanos{100}, 300, true}, {"other", {}, 0, true}});
  EXPECT_FALSE(has_a_choice(p));
  EXPECT_EQ(with_best_algorithms(p).ops[0].algorithms[0].time, Nanos{100});
  EXPECT_EQ(with_best_algorithms(p).ops[0].algorithms[0].workspace, 300);
}

TEST(AnyAlgorithms, AChoiceIsOneOfMeasuredAlgorithmsOfADeviceOp) {
  EXPECT_FALSE(has_a_choice(any_program({{"only", Nanos{1}, 0, true}})));
  EXPECT_TRUE(has_a_choice(any_program({{"a", Nanos{1}, 9, true}, {"b", Nanos{2}, 0, true}})));
}

}  // namespace
}  // namespace tidepool
