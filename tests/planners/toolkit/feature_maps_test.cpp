#include "planners/toolkit/feature_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::UnorderedElementsAre;

std::vector<std::string> maps_of(const Program& program) {
  const AccessIndex index(program);
  const LayerPasses passes(
      program, load_profile(program, index, 64, least_workspace_algorithms(program)).at_op);
  std::vector<std::string> names;
  for (const FeatureMap& map : feature_maps(program, index, passes)) {
    const Gap& gap = index.gaps()[static_cast<std::size_t>(map.gap)];
    names.push_back(program.tensors[static_cast<std::size_t>(gap.tensor)].name + " of " +
                    program.ops[static_cast<std::size_t>(map.maker)].name);
  }
  return names;
}

TEST(FeatureMaps, AreWhatForwardMakesAndBackwardReads) {
  testing::SubBatchWorkload workload;
  EXPECT_THAT(maps_of(**workload.program(8)),
              UnorderedElementsAre("x0@0 of feed@0", "x1@0 of forward0@0", "x2@0 of forward1@0",
                                   "x3@0 of forward2@0", "x4@0 of forward3@0"));
}

TEST(FeatureMaps, EachRoundHasItsOwn) {
  testing::SubBatchWorkload workload;
  EXPECT_EQ(maps_of(**workload.program(2)).size(), 4 * 5U);
}

TEST(FeatureMaps, WhatAnotherOpChangesIsItsMap) {
  using enum AccessMode;
  testing::SubBatchWorkload workload;
  Program program = **workload.program(8);
  Op in_place = program.ops[2];
  in_place.name = "in place";
  in_place.accesses = {{program.ops[1].accesses[2].tensor, update}};
  program.ops.insert(program.ops.begin() + 2, in_place);
  EXPECT_THAT(maps_of(program), ::testing::Contains("x1@0 of in place"));
}

}  // namespace
}  // namespace tidepool
