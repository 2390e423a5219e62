#include "planners/published/vdnn/vdnn_plus_live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "planners/published/modnn/sub_batch.h"
#include "planners/published/vdnn/vdnn_dyn.h"
#include "planning/make_plan.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::SubBatchWorkload;

class VdnnPlusLive : public ::testing::Test {
 protected:
  [[nodiscard]] Planned plan(Bytes budget, const MayDecide& may = {}) {
    PlannerOptions options;
    options.may = may;
    auto planned = make_plan(*make_vdnn_plus_live(), workload_, machine_, {budget, 0}, options);
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

TEST_F(VdnnPlusLive, RoundsAreThoseOfMoDNNOrSmaller) {
  for (const std::int64_t size : workload_.sub_batches()) {
    const Planned planned = plan(window(size));
    EXPECT_LE(planned.sub_batch(), size);
    EXPECT_FALSE(planned.lowered.streaming) << size;
  }
  EXPECT_EQ(plan(1 << 20).sub_batch(), SubBatchWorkload::kBatch);
}

TEST_F(VdnnPlusLive, TrainsWhereVdnnCannot) {
  const Bytes budget = window(1);
  const auto vdnn = make_plan(*make_vdnn_dyn(), workload_, machine_, {budget, 0}, {});
  EXPECT_TRUE(!vdnn || vdnn->lowered.streaming);
  EXPECT_THAT(plan(budget).notes, Contains(HasSubstr("8 rounds")));
}

/// It gave up on rounds of one sample where the fastest algorithms had no size at all.
TEST_F(VdnnPlusLive, TrainsWhereverVdnnDoesInSomeSize) {
  int below_the_rule = 0;
  for (Bytes budget = 4 << 10; budget < window(SubBatchWorkload::kBatch); budget += 256) {
    SCOPED_TRACE(budget);
    bool can = false;
    for (const std::int64_t size : workload_.sub_batches()) {
      FixedWorkload of_size(**workload_.program(size));
      const auto vdnn = make_plan(*make_vdnn_dyn(), of_size, machine_, {budget, 0}, {});
      can |= vdnn && !vdnn->lowered.streaming;
    }
    if (!can || budget >= window(1)) continue;
    ++below_the_rule;
    EXPECT_FALSE(plan(budget).lowered.streaming);
  }
  EXPECT_GT(below_the_rule, 0);
}

TEST_F(VdnnPlusLive, InAGivenSizeItIsVdnn) {
  MayDecide may;
  may.sub_batch = false;
  PlannerOptions options;
  options.may = may;
  const Bytes budget = window(8);
  const auto vdnn = make_plan(*make_vdnn_dyn(), workload_, machine_, {budget, 0}, options);
  ASSERT_TRUE(vdnn);
  const Planned plus = plan(budget, may);
  EXPECT_EQ(plus.lowered.strategy.gaps, vdnn->lowered.strategy.gaps);
  EXPECT_EQ(plus.lowered.iteration_time, vdnn->lowered.iteration_time);
}

TEST_F(VdnnPlusLive, ADowngradeHoldsInAllRounds) {
  FixedWorkload rounds(**workload_.program(2));
  const Program& program = **rounds.program(2);
  bool downgraded = false;
  for (Bytes budget = 4 << 10; budget < (32 << 10); budget += 256) {
    const auto planned = make_plan(*make_vdnn_plus_live(), rounds, machine_, {budget, 0}, {});
    if (!planned || planned->notes[0].find("downgrade") == std::string::npos) continue;
    downgraded = true;
    const auto& algorithms = planned->lowered.strategy.algorithms;
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        const std::string& a = program.ops[i].name;
        const std::string& b = program.ops[k].name;
        if (a.substr(0, a.find('@')) != b.substr(0, b.find('@'))) continue;
        EXPECT_EQ(algorithms[i], algorithms[k]) << a << " and " << b << " in " << budget;
      }
    }
  }
  EXPECT_TRUE(downgraded);
}

}  // namespace
}  // namespace tidepool
