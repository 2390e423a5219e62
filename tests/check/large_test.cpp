// Proofs of plans so large that two threads share the work: the same refusals, in the same order.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "base/at.h"
#include "check/check.h"
#include "lower/lower.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

class LargeCheck : public ::testing::Test {
 protected:
  /// A chain that the host feeds. Every op reads what the one before it and the third before it
  /// wrote.
  void SetUp() override {
    using enum AccessMode;
    program_.name = "chain";
    for (int i = 0; i < kOps; ++i) {
      program_.tensors.push_back({fmt::format("x{}", i), 64, TensorKind::activation, false});
      Op op;
      op.name = fmt::format("op{}", i);
      op.kind = "chain";
      op.place = i == 0 ? OpPlace::host : OpPlace::device;
      op.algorithms.push_back({"only", Nanos{100}, 0, true});
      for (const int before : {i - 1, i - 3}) {
        if (before >= 0) op.accesses.push_back({TensorId{before}, read});
      }
      op.accesses.push_back({TensorId{i}, write});
      program_.ops.push_back(std::move(op));
    }
    Machine machine;
    machine.set_alignment(64);
    Lowering lowering(program_, machine);
    auto lowered = lowering.lower(
        keep_everything(program_, lowering.index(), least_workspace_algorithms(program_)), budget_);
    ASSERT_TRUE(lowered) << lowered.error().message;
    plan_ = std::move(lowered->plan);
  }

  std::string refusal() {
    const auto proof = check(program_, plan_, {budget_.device, 0});
    return proof ? std::string() : proof.error().message;
  }

  Instruction& instruction_of(OpId op) {
    return *std::ranges::find_if(plan_.steady.instructions, [op](const Instruction& x) {
      return x.kind == InstructionKind::op && x.op == op;
    });
  }

  /// Bytes that the next op still reads get the address of what this op writes.
  void write_over_a_value() {
    const Instruction& x = instruction_of(kOps / 2);
    const Instruction& next = instruction_of(kOps / 2 + 1);
    plan_.placements[at(x.operands[2])].offset = plan_.placements[at(next.operands[1])].offset;
  }

  static constexpr int kOps = 5'000;
  Program program_;
  Budget budget_{1 << 20, 0};
  Plan plan_;
};

TEST_F(LargeCheck, ASoundPlanIsProved) { EXPECT_EQ(refusal(), ""); }

TEST_F(LargeCheck, AWrongValueIsFound) {
  write_over_a_value();
  EXPECT_THAT(refusal(), HasSubstr("(3)"));
}

/// The first op does not wait for what the host feeds.
TEST_F(LargeCheck, ARaceComesBeforeAWrongValue) {
  write_over_a_value();
  instruction_of(1).waits.clear();
  EXPECT_THAT(refusal(), HasSubstr("(2)"));
}

}  // namespace
}  // namespace tidepool
