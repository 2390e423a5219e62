#include "planners/published/vdnn/vdnn_dyn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "planning/make_plan.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

/// Layers 0 and 2 of four are convolutions. Each op has two algorithms: one with a workspace, and
/// one in about half the time with 4 KiB more.
class VdnnDyn : public ::testing::Test {
 protected:
  VdnnDyn() {
    for (Op& op : program_.ops) {
      if (op.phase == Phase::forward) op.kind = op.layer % 2 == 0 ? "conv_forward" : "relu_forward";
    }
  }
  [[nodiscard]] Result<Planned> try_to_plan(Bytes budget, const MayDecide& may) const {
    FixedWorkload workload(program_);
    PlannerOptions options;
    options.may = may;
    return make_plan(*make_vdnn_dyn(), workload, testing::byte_a_nanosecond(64), {budget, 0},
                     options);
  }
  [[nodiscard]] Planned plan(Bytes budget) const {
    auto planned = try_to_plan(budget, {});
    EXPECT_TRUE(planned) << planned.error().message;
    return std::move(*planned);
  }
  [[nodiscard]] Bytes least() const { return smallest_budget(program_, 64).bytes; }
  [[nodiscard]] Bytes peak() const {
    return load_profile(program_, AccessIndex(program_), 64, fastest_algorithms(program_)).peak;
  }
  /// Its place in the order of trials.
  static int stage(const std::string& note) {
    if (note.starts_with("nothing is offloaded")) return 0;
    if (note.find("downgrade") != std::string::npos) return note.starts_with("conv(p)") ? 3 : 4;
    if (note.starts_with("conv(p)")) return 1;
    if (note.starts_with("all(p)")) return 2;
    EXPECT_TRUE(note.starts_with("all(m)")) << note;
    return note.find("cannot train") == std::string::npos ? 5 : 6;
  }

  Program program_ = **testing::SubBatchWorkload().program(testing::SubBatchWorkload::kBatch);
};

TEST_F(VdnnDyn, WhatFitsWithTheFastestAlgorithmsIsNotOffloaded) {
  const Planned planned = plan(2 * peak());
  EXPECT_EQ(stage(planned.notes[0]), 0);
  EXPECT_EQ(planned.lowered.strategy.algorithms, fastest_algorithms(program_));
  for (const Decision d : planned.lowered.strategy.gaps) EXPECT_EQ(d, Decision::keep);
}

TEST_F(VdnnDyn, LessMemoryLeadsToLaterTrials) {
  int last = 0;
  std::vector<int> seen(7, 0);
  for (Bytes budget = peak() + 1024; budget >= least(); budget -= 256) {
    SCOPED_TRACE(budget);
    const Planned planned = plan(budget);
    const int now = stage(planned.notes[0]);
    EXPECT_GE(now, last);
    EXPECT_EQ(planned.lowered.streaming, now == 6);
    ++seen[static_cast<std::size_t>(now)];
    last = now;
  }
  EXPECT_GT(seen[0], 0);
  EXPECT_GT(seen[1], 0) << "conv(p)";
  EXPECT_GT(seen[3] + seen[4], 0) << "downgrades";
  EXPECT_GT(seen[6], 0) << "cannot train";
}

TEST_F(VdnnDyn, ADowngradeKeepsTheFastAlgorithmsElsewhere) {
  for (Bytes budget = peak(); budget >= least(); budget -= 256) {
    const Planned planned = plan(budget);
    if (planned.notes[0].find("after 1 downgrade") == std::string::npos) continue;
    const auto fast = fastest_algorithms(program_);
    int different = 0;
    for (std::size_t i = 0; i < fast.size(); ++i) {
      different += planned.lowered.strategy.algorithms[i] != fast[i] ? 1 : 0;
    }
    EXPECT_EQ(different, 1);
    return;
  }
  ADD_FAILURE() << "no budget with one downgrade";
}

TEST_F(VdnnDyn, WithGivenAlgorithmsOnlyTheOffloadsAreTried) {
  MayDecide may;
  may.algorithms = false;
  int planned_for = 0;
  for (Bytes budget = peak(); budget >= least(); budget -= 1024) {
    const auto planned = try_to_plan(budget, may);
    if (!planned) {
      // Nor is the streaming schedule allowed, which has algorithms of its own.
      EXPECT_EQ(planned.error().code, ErrorCode::infeasible) << planned.error().message;
      continue;
    }
    ++planned_for;
    EXPECT_EQ(planned->lowered.strategy.algorithms, least_workspace_algorithms(program_));
    EXPECT_EQ(planned->notes[0].find("downgrade"), std::string::npos);
  }
  EXPECT_GT(planned_for, 1);
}

}  // namespace
}  // namespace tidepool
