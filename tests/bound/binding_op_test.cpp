#include "bound/binding_op.h"

#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "support/attacks.h"
#include "support/odd_program.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using enum AccessMode;
using testing::byte_a_nanosecond;

/// A tensor of 4096 B that has to leave for one op of large workspace, with one op on either side.
Program one_gap_before_a_peak() {
  testing::ProgramBuilder b;
  const TensorId big = b.tensor("big", 4096);
  const TensorId x = b.tensor("x", 64);
  b.device("first", {{big, write}, {x, write}}, Nanos{1000});
  b.last().random = true;
  b.last().recomputable = false;
  b.device("before", {{x, update}}, Nanos{1000});
  b.device("peak", {{x, update}}, Nanos{1000}, 4096);
  b.device("behind", {{x, update}}, Nanos{1000});
  b.device("last", {{x, read}, {big, read}}, Nanos{1000});
  return b.build();
}

Nanos by_one_op(const Program& program, const Machine& machine, Bytes limit,
                bool recompute = false) {
  const AccessIndex index(program);
  const auto algorithms = least_workspace_algorithms(program);
  return binding_op_bound({program, index, machine, algorithms, recompute}, limit);
}

TEST(BindingOp, WhatComesBackBeforeTheNextUseHasTheTimeInBetween) {
  EXPECT_EQ(by_one_op(one_gap_before_a_peak(), byte_a_nanosecond(64), 9000), Nanos{0})
      << "all of it fits";
  const Nanos b = by_one_op(one_gap_before_a_peak(), byte_a_nanosecond(64), 4096 + 64);
  EXPECT_NEAR(static_cast<double>(b.count()), 3096, 5) << "4096 ns of copies, 1000 ns of an op";
}

TEST(BindingOp, WhatIsMadeAgainTakesItsOpOnce) {
  Program program = one_gap_before_a_peak();
  program.ops[0].recomputable = true;
  const Nanos b = by_one_op(program, byte_a_nanosecond(64), 4096 + 64, true);
  // Of 4096 B some are copied in 1000 ns and O, the others made again in O.
  EXPECT_GT(b, Nanos{0});
  EXPECT_LE(b, Nanos{1000});
}

/// Against the linear program, which knows all of this and more, on programs without layers.
TEST(BindingOp, IsMostlyNoMoreThanTheFluidBound) {
  std::uint64_t above = 0;
  std::uint64_t positive = 0;
  const std::uint64_t programs = testing::attacks(200);
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = seed % 2 == 0 ? testing::random_program(seed, {2, 4096, 2})
                                          : testing::odd_program(seed, testing::HostUse::plain);
    const Machine machine = testing::random_machine(seed);
    const AccessIndex index(program);
    const auto algorithms = least_workspace_algorithms(program);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    const Bytes peak = load_profile(program, index, machine.alignment(), algorithms).peak;
    const FluidProblem problem{program, index, machine, algorithms, seed % 3 == 0};
    const Bytes limit = least + (peak - least) / 3;
    const Nanos one = binding_op_bound(problem, limit);
    const FluidBound all = fluid_bound(problem, limit);
    positive += one > Nanos{0};
    above += all.feasible && one > all.overhead + Nanos{2};
  }
  if (testing::enough_for_shares(programs)) {
    EXPECT_GT(positive, programs / 10);
  }
  EXPECT_LE(above, programs / 20);
  RecordProperty("positive", static_cast<int>(positive));
  RecordProperty("above", static_cast<int>(above));
}

}  // namespace
}  // namespace tidepool
