// A correct plan of a small program, broken by hand in every way the clauses of `check` name.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/at.h"
#include "check/check.h"
#include "lower/lower.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool::testing {

class Check : public ::testing::Test {
 protected:
  // Tensors: input, weight, hidden, output, gradient. Ops: feed, forward, head, backward, update,
  // collect. The weight is swapped between forward and update.
  Program program_ = tiny_training();
  Plan plan_;
  CheckLimits limits_;

  void SetUp() override {
    Lowering lowering(program_, byte_a_nanosecond(64));
    Strategy strategy =
        keep_everything(program_, lowering.index(), least_workspace_algorithms(program_));
    strategy.gaps[at(lowering.index().first_gap(kWeight))] = Decision::swap;
    const Budget budget{1 << 20, 0};
    auto lowered = lowering.lower(strategy, budget);
    ASSERT_TRUE(lowered) << lowered.error().message;
    plan_ = lowered->plan;
    limits_ = {plan_.device_bytes(), plan_.host_bytes()};
    ASSERT_EQ(refusal(), "accepted");
  }

  static constexpr TensorId kWeight = 1;
  static constexpr TensorId kGradient = 4;

  std::string refusal() const {
    const auto proof = check(program_, plan_, limits_);
    if (proof) return "accepted";
    EXPECT_EQ(proof.error().code, ErrorCode::check_failed) << proof.error().message;
    return proof.error().message;
  }

  /// Matches a refusal by one of the clauses.
  static ::testing::Matcher<std::string> clause(int number) {
    return ::testing::HasSubstr(fmt::format("the plan is wrong: ({})", number));
  }

  std::vector<Instruction>& steady() { return plan_.steady.instructions; }
  Instruction& op(const std::string& name) { return steady()[at(op_index(name))]; }
  std::int32_t op_index(const std::string& name) {
    for (std::size_t i = 0; i < steady().size(); ++i) {
      const Instruction& x = steady()[i];
      if (x.kind == InstructionKind::op && program_.ops[at(x.op)].name == name) {
        return static_cast<std::int32_t>(i);
      }
    }
    ADD_FAILURE() << "no op " << name;
    return 0;
  }
  Placement& placement(PlacementId id) { return plan_.placements[at(id)]; }
  /// The steady copy of a tensor in the given direction.
  std::int32_t copy_index(TensorId tensor, bool to_host) {
    for (std::size_t i = 0; i < steady().size(); ++i) {
      const Instruction& x = steady()[i];
      if (x.kind == InstructionKind::copy && placement(x.from).tensor == tensor &&
          (placement(x.to).space == plan_.host()) == to_host) {
        return static_cast<std::int32_t>(i);
      }
    }
    ADD_FAILURE() << "no copy of tensor " << tensor;
    return 0;
  }

  /// Inserts before `position`; waits keep naming the instructions they named.
  static void insert(Schedule& s, std::int32_t position, Instruction x) {
    for (Instruction& other : s.instructions) {
      for (Wait& w : other.waits) {
        if (w.index >= position) ++w.index;
      }
    }
    s.instructions.insert(s.instructions.begin() + position, std::move(x));
  }
  static void erase(Schedule& s, std::int32_t position) {
    s.instructions.erase(s.instructions.begin() + position);
    for (Instruction& other : s.instructions) {
      std::erase_if(other.waits, [&](const Wait& w) { return w.index == position; });
      for (Wait& w : other.waits) {
        if (w.index > position) --w.index;
      }
    }
  }
  static std::int32_t find_kind(const Schedule& s, InstructionKind kind) {
    const auto it = std::find_if(s.instructions.begin(), s.instructions.end(),
                                 [&](const Instruction& x) { return x.kind == kind; });
    EXPECT_NE(it, s.instructions.end());
    return static_cast<std::int32_t>(it - s.instructions.begin());
  }
};

}  // namespace tidepool::testing
