#include "planners/published/dqn/q_learning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners/published/dqn/network_weights.h"
#include "support/some_value.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A value that is stated and not read would be planned without.
TEST(QLearningOptions, EveryOneIsRead) {
  for (const OptionRecord& record : q_learning_options()) {
    if (record.type == OptionType::output_file) continue;  // who runs the planner writes those
    OptionValues values;
    values.set(record.name, testing::some_value(record));
    EXPECT_NE(q_learning_of(values), QLearning{}) << record.name;
  }
}

TEST(QLearningOptions, TheUsualValuesOfTheRecordsAreThoseThatAreTaken) {
  int stated = 0;
  for (const OptionRecord& record : q_learning_options()) {
    const std::string_view usual = record.usual.substr(0, record.usual.find_first_of(",;"));
    const auto value = parse_option(record, usual);
    if (!value || std::holds_alternative<std::string>(*value)) continue;
    OptionValues values;
    values.set(record.name, *value);
    EXPECT_EQ(q_learning_of(values), QLearning{}) << record.name;
    ++stated;
  }
  EXPECT_GE(stated, 6);
}

TEST(QLearningOptions, AsPublishedIsOneRewardAStepOfEachDecisionAndNothingElse) {
  OptionValues values;
  values.set("dqn_published", true);
  const QLearning q = q_learning_of(values);
  EXPECT_EQ(q.reach, 1);
  EXPECT_EQ(q.decisions_a_step, 1);
  EXPECT_FALSE(q.improves);
}

TEST(QLearningOptions, ASavedNetworkHasItsOwnWidth) {
  OptionValues values;
  values.set("network", dqn::write_network(dqn::initial_weights(8, 3, 1)));
  EXPECT_EQ(q_learning_of(values).width, 8);
  EXPECT_EQ(q_learning_of(values).hops, 3);
}

TEST(QLearningOptions, WhatWouldChangeNothingIsRefused) {
  OptionValues values;
  values.set("dqn_uniform", true);
  EXPECT_TRUE(check_q_learning(values));
  values.set("dqn_width", 8);
  const auto refused = check_q_learning(values);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::usage);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("`dqn_width`"), HasSubstr("`dqn_uniform`")));
}

}  // namespace
}  // namespace tidepool
