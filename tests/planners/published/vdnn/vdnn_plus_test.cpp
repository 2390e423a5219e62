#include "planners/published/vdnn/vdnn_plus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "planners/published/modnn/sub_batch.h"
#include "planners/published/modnn/task_memory.h"
#include "planners/published/vdnn/vdnn_plus_live.h"
#include "planning/make_plan.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::SubBatchWorkload;

class VdnnPlus : public ::testing::Test {
 protected:
  [[nodiscard]] Planned plan(Workload& workload, Bytes budget, const PlannerOptions& options = {}) {
    auto planned = make_plan(*make_vdnn_plus(), workload, machine_, {budget, 0}, options);
    EXPECT_TRUE(planned) << planned.error().message;
    return planned ? std::move(*planned) : Planned{};
  }
  [[nodiscard]] Bytes window(std::int64_t size) {
    const Program& p = **workload_.program(size);
    return modnn::window_bytes(p, fastest_algorithms(p), {modnn::kPublishedAlpha, 64, false});
  }
  SubBatchWorkload workload_;
  Machine machine_ = testing::byte_a_nanosecond(64);
};

TEST_F(VdnnPlus, RoundsAreThoseOfMoDNNOrSmaller) {
  for (const std::int64_t size : workload_.sub_batches()) {
    const Planned planned = plan(workload_, window(size));
    EXPECT_LE(planned.sub_batch(), size);
    EXPECT_FALSE(planned.lowered.streaming) << size;
  }
}

/// The paper: "once the memory budget cannot hold all the involved data, it offloads". What is live
/// at a time takes less.
TEST_F(VdnnPlus, OffloadsUnlessAllDataOfARoundFitAtOnce) {
  Program program = **workload_.program(SubBatchWorkload::kBatch);
  for (Op& op : program.ops) {
    if (op.phase == Phase::forward && op.layer < 2) op.kind = "conv_forward";
  }
  FixedWorkload whole(program);
  const Bytes all = modnn::ideal_memory(program, 64);
  EXPECT_THAT(plan(whole, all).notes, Contains(HasSubstr("nothing is offloaded")));
  const Planned less = plan(whole, all - 64);
  EXPECT_THAT(less.notes, Contains(HasSubstr("2 inputs of layers are offloaded")));
  const auto live = make_plan(*make_vdnn_plus_live(), whole, machine_, {all - 64, 0}, {});
  ASSERT_TRUE(live);
  EXPECT_THAT(live->notes, Contains(HasSubstr("nothing is offloaded")));
  EXPECT_NE(less.lowered.strategy.gaps, live->lowered.strategy.gaps);
}

/// It gave +15 or +225 % in two runs, by the clock.
TEST_F(VdnnPlus, NoClockDecides) {
  PlannerOptions none;
  none.time_limit = Nanos{0};
  for (const std::int64_t size : workload_.sub_batches()) {
    const Planned at_once = plan(workload_, window(size), none);
    const Planned planned = plan(workload_, window(size));
    EXPECT_EQ(at_once.lowered.strategy.gaps, planned.lowered.strategy.gaps);
    EXPECT_EQ(at_once.lowered.iteration_time, planned.lowered.iteration_time);
  }
}

}  // namespace
}  // namespace tidepool
