#include "planners/published/vdnn/vdnn_all.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ir/load_profile.h"
#include "planning/make_plan.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::SubBatchWorkload;

constexpr Bytes kPlenty = Bytes{1} << 30;

/// Ops of the network of SubBatchWorkload in one round.
enum : std::int32_t { kFeed, kForward0, kForward1, kForward2, kForward3 };
enum : std::int32_t { kBackward3 = 5, kBackward2, kBackward1, kBackward0 };

class VdnnAll : public ::testing::Test {
 protected:
  explicit VdnnAll(std::int64_t samples = SubBatchWorkload::kBatch)
      : program_(**SubBatchWorkload().program(samples)) {}

  [[nodiscard]] Planned plan(Bytes budget = kPlenty) const {
    FixedWorkload workload(program_);
    auto planned =
        make_plan(*make_vdnn_all(), workload, testing::byte_a_nanosecond(64), {budget, 0}, {});
    EXPECT_TRUE(planned) << planned.error().message;
    return std::move(*planned);
  }
  /// Tensor -> decision, of what is not kept.
  static std::map<std::string, Decision> away(const Program& program, const Strategy& strategy) {
    std::map<std::string, Decision> result;
    const AccessIndex index(program);
    for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
      if (strategy.gaps[g] == Decision::keep) continue;
      result[program.tensors[static_cast<std::size_t>(index.gaps()[g].tensor)].name] =
          strategy.gaps[g];
    }
    return result;
  }
  [[nodiscard]] CopyHint hint(const Strategy& strategy, std::string_view tensor) const {
    const AccessIndex index(program_);
    for (const CopyHint& hint : strategy.hints) {
      const Gap& gap = index.gaps()[static_cast<std::size_t>(hint.gap)];
      if (program_.tensors[static_cast<std::size_t>(gap.tensor)].name == tensor) return hint;
    }
    ADD_FAILURE() << "no hint for " << tensor;
    return {};
  }

  Program program_;
};

TEST_F(VdnnAll, EveryLayersInputLeavesBetweenForwardAndBackward) {
  const Planned planned = plan();
  // The host has x0, which it fed; x4 is no layer's input.
  EXPECT_EQ(away(program_, planned.lowered.strategy),
            (std::map<std::string, Decision>{{"x0@0", Decision::drop},
                                             {"x1@0", Decision::swap},
                                             {"x2@0", Decision::swap},
                                             {"x3@0", Decision::swap}}));
  EXPECT_FALSE(planned.lowered.streaming);
  EXPECT_THAT(planned.notes, Contains(HasSubstr("4 inputs of layers are offloaded")));
}

TEST_F(VdnnAll, TheNearestLayerBeforeIsPrefetchedWhenABackwardPassBegins) {
  const Strategy strategy = plan().lowered.strategy;
  const CopyHint x3 = hint(strategy, "x3@0");  // nobody is behind its layer
  EXPECT_EQ(x3.in_trigger, kBackward3);
  const CopyHint x2 = hint(strategy, "x2@0");
  EXPECT_EQ(x2.in_trigger, kBackward3);
  EXPECT_EQ(x2.in_barrier, kBackward2);
  const CopyHint x1 = hint(strategy, "x1@0");
  EXPECT_EQ(x1.in_trigger, kBackward2);
  EXPECT_EQ(x1.in_barrier, kBackward1);
  EXPECT_EQ(hint(strategy, "x0@0").in_trigger, kBackward1);
}

TEST_F(VdnnAll, TheLayerAfterTheNextWaitsForAnOffload) {
  const Strategy strategy = plan().lowered.strategy;
  EXPECT_EQ(hint(strategy, "x1@0").out_barrier, kForward3);
  EXPECT_EQ(hint(strategy, "x2@0").out_barrier, kBackward3);
  EXPECT_FALSE(hint(strategy, "x0@0").out_barrier) << "it is not copied out";
}

/// Two convolutions and two fully connected layers.
class VdnnAllOfConvolutions : public VdnnAll {
 protected:
  VdnnAllOfConvolutions() {
    for (Op& op : program_.ops) {
      if (op.phase == Phase::forward) op.kind = op.layer < 2 ? "conv_forward" : "linear_forward";
    }
  }
};

TEST_F(VdnnAllOfConvolutions, ClassifierLayersKeepTheirInputs) {
  EXPECT_EQ(away(program_, plan().lowered.strategy),
            (std::map<std::string, Decision>{{"x0@0", Decision::drop}, {"x1@0", Decision::swap}}));
}

TEST_F(VdnnAllOfConvolutions, TheSearchForALayerToPrefetchEndsAtTheFirstConvolution) {
  const Strategy strategy = plan().lowered.strategy;
  EXPECT_EQ(hint(strategy, "x1@0").in_trigger, kBackward3);
  EXPECT_EQ(hint(strategy, "x0@0").in_trigger, kBackward1) << "not backward 2: layer 1 is between";
}

class VdnnAllInRounds : public VdnnAll {
 protected:
  VdnnAllInRounds() : VdnnAll(4) {}
};

TEST_F(VdnnAllInRounds, EachRoundIsAnIterationOfItsOwn) {
  const auto gone = away(program_, plan().lowered.strategy);
  EXPECT_EQ(gone.size(), 8U);
  EXPECT_EQ(gone.at("x2@1"), Decision::swap);
}

TEST_F(VdnnAll, WithoutLayersEachOpIsOne) {
  program_.layers.clear();
  for (Op& op : program_.ops) {
    op.layer = kNone;
    op.phase = Phase::other;
  }
  const auto gone = away(program_, plan().lowered.strategy);
  EXPECT_TRUE(gone.contains("x1@0") && gone.contains("x2@0"));
}

TEST_F(VdnnAll, WhereThePolicyDoesNotFitTheStreamingScheduleIsUsedAndANoteSaysSo) {
  const Planned planned = plan(smallest_budget(program_, 64).bytes);
  EXPECT_TRUE(planned.lowered.streaming);
  EXPECT_THAT(planned.notes, Contains(HasSubstr("vDNN cannot train")));
}

}  // namespace
}  // namespace tidepool
