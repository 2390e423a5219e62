#include "planners/published/modnn/script_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at.h"
#include "check/check.h"
#include "support/program_builder.h"

namespace tidepool::modnn {
namespace {

using enum AccessMode;

class ScriptWriterTest : public ::testing::Test {
 protected:
  Script script_of(Bytes memory, bool weights_leave, bool one_data_stream = false) {
    program_ = b_.build();
    const AccessIndex index(program_);
    SchedulerOptions options;
    options.stage = {memory, weights_leave, one_data_stream};
    const DataSchedule schedule = schedule_transfers(program_, index, machine_, options);
    EXPECT_EQ(schedule.stuck, kNone);
    return write_script(program_, machine_, schedule, one_data_stream);
  }
  void expect_proved(const Script& script, Bytes memory) const {
    const auto plan = plan_of_script(program_, script);
    ASSERT_TRUE(plan) << plan.error().message;
    const auto proof = check(program_, *plan, {memory, 0});
    EXPECT_TRUE(proof) << proof.error().message;
  }
  testing::ProgramBuilder b_;
  Machine machine_ = testing::byte_a_nanosecond();
  Program program_;
};

// Each x leaves and comes back before the next one does.
TEST_F(ScriptWriterTest, HostBytesAreUsedAgainWhenTheirValueIsNotWanted) {
  for (int i = 0; i < 3; ++i) {
    const TensorId x = b_.tensor(fmt::format("x{}", i), 10);
    const TensorId y = b_.tensor(fmt::format("y{}", i), 15);
    b_.device(fmt::format("make x{}", i), {{x, write}}, Nanos{9});
    b_.device(fmt::format("look at x{}", i), {{x, read}}, Nanos{9});
    b_.device(fmt::format("make y{}", i), {{y, write}}, Nanos{9});
    b_.device(fmt::format("use y{}", i), {{y, read}}, Nanos{9});
    b_.device(fmt::format("use x{}", i), {{x, read}}, Nanos{9});
  }
  const Script script = script_of(15, false);
  EXPECT_EQ(script.arenas[0].bytes, 15);
  EXPECT_EQ(script.arenas[1].bytes, 10);
  expect_proved(script, 15);
}

TEST_F(ScriptWriterTest, WeightsLieWhereTheyStay) {
  const TensorId w = b_.tensor("w", 10, true);
  const TensorId v = b_.tensor("v", 6, true);
  const TensorId x = b_.tensor("x", 5);
  b_.device("forward", {{w, read}, {x, write}}, Nanos{9});
  b_.device("update", {{x, read}, {w, update}}, Nanos{9});
  b_.device("update too", {{v, update}}, Nanos{9});
  const Script resident = script_of(21, false);
  ASSERT_EQ(resident.boundary.size(), 2u);
  for (const PlacementId id : resident.boundary) {
    EXPECT_EQ(resident.placements[at(id)].space, 0);
  }
  EXPECT_EQ(resident.items.size(), 3u);
  EXPECT_EQ(resident.arenas[1].bytes, 0);
  expect_proved(resident, 21);
  const Script leaving = script_of(15, true);
  for (const PlacementId id : leaving.boundary) EXPECT_EQ(leaving.placements[at(id)].space, 1);
  EXPECT_EQ(leaving.items.size(), 7u) << "both come and go";
  EXPECT_EQ(leaving.arenas[1].bytes, 16);
  expect_proved(leaving, 15);
}

TEST_F(ScriptWriterTest, OneDataStreamCarriesBothDirections) {
  const TensorId w = b_.tensor("w", 10, true);
  b_.device("update", {{w, update}}, Nanos{9});
  for (const bool one : {false, true}) {
    const Script script = script_of(10, true, one);
    ASSERT_EQ(script.items.size(), 3u);
    EXPECT_EQ(script.items[0].stream == script.items[2].stream, one);
    expect_proved(script, 10);
  }
}

TEST_F(ScriptWriterTest, WhatTheHostHoldsUntilItIsReleasedKeepsItsBytes) {
  const TensorId seen = b_.tensor("seen", 8);
  const TensorId other = b_.tensor("other", 8);
  b_.host("write", {{seen, write}});
  b_.host("write other", {{other, write}});
  b_.host("end", {{other, read}});
  for (const bool held : {false, true}) {
    program_ = b_.build();
    if (held) program_.tensors[0].released_at = 2;
    const AccessIndex index(program_);
    const DataSchedule schedule = schedule_transfers(program_, index, machine_, {});
    const Script script = write_script(program_, machine_, schedule, false);
    EXPECT_EQ(script.arenas[1].bytes, held ? 16 : 8);
    const auto plan = plan_of_script(program_, script);
    ASSERT_TRUE(plan);
    EXPECT_TRUE(check(program_, *plan, {1, 0}));
  }
}

}  // namespace
}  // namespace tidepool::modnn
