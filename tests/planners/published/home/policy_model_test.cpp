#include "planners/published/home/policy_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/load_profile.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

class PolicyModelOf : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Program program_ = testing::random_program(GetParam());
  Machine machine_ = testing::random_machine(GetParam());
  AccessIndex index_{program_};
  std::vector<std::int32_t> algorithms_ = least_workspace_algorithms(program_);
  FeatureMaps maps_{program_, index_, machine_, algorithms_, {}};
  PolicyModel model_{program_, index_, machine_, algorithms_, maps_};
};

TEST_P(PolicyModelOf, StretchesCoverTheProgramAndBeginAndEndWhereMapsMayMove) {
  OpId next = 0;
  Nanos time{0};
  for (std::size_t s = 0; s + 1 < model_.stretches.size(); ++s) {
    const Stretch& stretch = model_.stretches[s];
    EXPECT_EQ(stretch.first, next);
    EXPECT_EQ(stretch.peak, model_.peak(stretch.first, stretch.end - 1));
    next = stretch.end;
    time += stretch.time;
    for (const ModelMap& map : model_.maps) {
      const auto inside = [&](OpId op) { return op > stretch.first && op < stretch.end; };
      EXPECT_FALSE(inside(map.to));
      EXPECT_FALSE(inside(map.fetch_at));
      EXPECT_FALSE(inside(map.from + 1));
    }
  }
  EXPECT_EQ(static_cast<std::size_t>(next), program_.ops.size());
  EXPECT_EQ(time, compute_time(program_, algorithms_));
  EXPECT_EQ(time, model_.rest.front());
  EXPECT_EQ(model_.fetches.size(), model_.maps.size());
  EXPECT_EQ(model_.needs.size(), model_.maps.size());
  EXPECT_EQ(model_.leaves.size(), model_.maps.size());
}

TEST_P(PolicyModelOf, PeaksAreTheLargestLoads) {
  const auto ops = static_cast<OpId>(program_.ops.size());
  for (OpId first = 0; first < ops; first += 3) {
    Bytes most = 0;
    for (OpId last = first; last < ops; ++last) {
      most = std::max(most, model_.ops[static_cast<std::size_t>(last)].load);
      ASSERT_EQ(model_.peak(first, last), most) << first << " to " << last;
    }
  }
}

TEST_P(PolicyModelOf, WhatIsThereBeforeAnOpIsItsLoadWithoutWhatItAllocates) {
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    const ModelOp& op = model_.ops[i];
    EXPECT_LE(op.between, op.load - op.workspace);
    EXPECT_GE(op.between, op.load - op.workspace - op.writes);
    EXPECT_GE(op.between, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, PolicyModelOf, ::testing::Range<std::uint64_t>(0, 12));

}  // namespace
}  // namespace tidepool
