#include "planners/published/home/feature_maps.h"

#include <gtest/gtest.h>

#include <map>

#include "ir/load_profile.h"
#include "support/attacks.h"
#include "support/odd_program.h"
#include "support/random_program.h"
#include "support/sanitized.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using enum AccessMode;

class FeatureMapsOf {
 public:
  explicit FeatureMapsOf(Program program, const MayDecide& may = {})
      : program_(std::move(program)), maps_(program_, index_, machine_, algorithms_, may) {}

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const MapChoice& m : maps_.maps()) {
      const Gap& gap = index_.gaps()[static_cast<std::size_t>(m.gap)];
      result.push_back(program_.tensors[static_cast<std::size_t>(gap.tensor)].name);
    }
    return result;
  }
  [[nodiscard]] const MapChoice& map(std::string_view name) const {
    const auto all = names();
    const auto found = std::find(all.begin(), all.end(), name);
    EXPECT_NE(found, all.end()) << name;
    return maps_.maps()[static_cast<std::size_t>(found - all.begin())];
  }
  [[nodiscard]] const std::vector<MapChoice>& all() const { return maps_.maps(); }
  [[nodiscard]] auto choices() const { return maps_.choices(); }
  [[nodiscard]] const AccessIndex& index() const { return index_; }
  [[nodiscard]] const Program& program() const { return program_; }

 private:
  Program program_;
  Machine machine_ = testing::byte_a_nanosecond(64);
  AccessIndex index_{program_};
  std::vector<std::int32_t> algorithms_ = least_workspace_algorithms(program_);
  FeatureMaps maps_;
};

Program network(std::int64_t samples = testing::SubBatchWorkload::kBatch) {
  return **testing::SubBatchWorkload().program(samples);
}

TEST(FeatureMaps, AreWhatWaitsFromForwardForBackward) {
  // Inputs of the four layers and the output of the last.
  EXPECT_EQ(FeatureMapsOf(network()).names(),
            (std::vector<std::string>{"x0@0", "x1@0", "x2@0", "x3@0", "x4@0"}));
}

TEST(FeatureMaps, EachRoundHasItsOwn) { EXPECT_EQ(FeatureMapsOf(network(4)).names().size(), 10U); }

TEST(FeatureMaps, CopiesInMayStartWhenTheBackwardPassBeforeBegins) {
  const FeatureMapsOf maps(network());
  const MapChoice& x1 = maps.map("x1@0");
  EXPECT_EQ(maps.program().ops[static_cast<std::size_t>(x1.to)].name, "backward1@0");
  EXPECT_EQ(maps.program().ops[static_cast<std::size_t>(x1.fetch_at)].name, "backward2@0");
}

TEST(FeatureMaps, WhatTheHostFeedsCannotBeRecomputed) {
  const FeatureMapsOf maps(network());
  EXPECT_FALSE(maps.map("x0@0").may_recompute);
  EXPECT_TRUE(maps.map("x0@0").may_swap);
  EXPECT_TRUE(maps.map("x1@0").may_recompute);
}

TEST(FeatureMaps, ActionsThatMayNotBeDecidedAreNotPossible) {
  const FeatureMapsOf only_swap(network(), {.recompute = false});
  for (const auto& of : only_swap.choices()) EXPECT_EQ(of, (std::vector<std::uint8_t>{0, 1}));
  const FeatureMapsOf only_recompute(network(), {.swap = false});
  EXPECT_EQ(only_recompute.all().size(), 4U) << "the input has no action left";
  for (const auto& of : only_recompute.choices()) EXPECT_EQ(of, (std::vector<std::uint8_t>{0, 2}));
}

/// Forward: x, y from x, z from y and x. Backward reads x three times.
Program with_skip_connection() {
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 256);
  const TensorId y = b.tensor("y", 256);
  const TensorId z = b.tensor("z", 256);
  const TensorId g = b.tensor("g", 256);
  const auto in = [&](Phase phase) { b.last().phase = phase; };
  b.device("f1", {{x, write}}, Nanos{1});
  in(Phase::forward);
  b.device("f2", {{x, read}, {y, write}}, Nanos{1});
  in(Phase::forward);
  b.device("f3", {{x, read}, {y, read}, {z, write}}, Nanos{1});
  in(Phase::forward);
  b.device("b3", {{z, read}, {x, read}, {g, write}}, Nanos{1});
  in(Phase::backward);
  b.device("b2", {{x, read}, {g, update}}, Nanos{1});
  in(Phase::backward);
  b.device("b1", {{x, read}, {g, read}}, Nanos{1});
  in(Phase::backward);
  return b.build();
}

TEST(FeatureMaps, ASkipConnectionWaitsFromItsLastForwardReaderToTheFirstBackwardReader) {
  const FeatureMapsOf maps(with_skip_connection());
  EXPECT_EQ(maps.names(), (std::vector<std::string>{"x", "z"}));
  EXPECT_EQ(maps.map("x").from, 2);
  EXPECT_EQ(maps.map("x").to, 3);
}

TEST(FeatureMaps, WhereTheTurnComesSeveralTimesEachIsADimension) {
  Program program = with_skip_connection();
  program.ops[4].phase = Phase::forward;
  EXPECT_EQ(FeatureMapsOf(program).names(), (std::vector<std::string>{"x", "z", "x", "g"}));
}

TEST(FeatureMaps, OpsThatMayNotRunAgainLeaveSwapping) {
  Program program = with_skip_connection();
  program.ops[0].recomputable = false;
  EXPECT_FALSE(FeatureMapsOf(program).map("x").may_recompute);
  program = with_skip_connection();
  program.ops[0].algorithms[0].deterministic = false;
  EXPECT_FALSE(FeatureMapsOf(program).map("x").may_recompute);
  program = with_skip_connection();
  program.ops[0].guard = 0;
  EXPECT_FALSE(FeatureMapsOf(program).map("x").may_recompute);
  program = with_skip_connection();
  program.single_placements = true;
  EXPECT_FALSE(FeatureMapsOf(program).map("x").may_recompute);
}

TEST(FeatureMaps, WhatIsPinnedStays) {
  Program program = with_skip_connection();
  program.tensors[0].pinned = true;
  EXPECT_EQ(FeatureMapsOf(program).names(), std::vector<std::string>{"z"});
}

/// Everything HOME may choose can be expanded: each map alone, and random policies.
TEST(FeatureMaps, WhatIsPossibleLowerDoesNotRefuse) {
  int recomputed = 0;
  const int programs = testing::some(testing::usual_or(80, 40), 400);
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(programs); ++seed) {
    SCOPED_TRACE(seed);
    testing::OddShape shape{.most_tensors = 12, .most_ops = 30, .recorded = seed % 4 == 1};
    const auto host = seed % 3 == 0 ? testing::HostUse::none : testing::HostUse::plain;
    const FeatureMapsOf maps(seed % 2 == 0 ? testing::random_program(seed)
                                           : testing::odd_program(seed, host, shape));
    Expander expander(maps.program(), maps.index());
    Expansion expansion;
    Strategy kept =
        keep_everything(maps.program(), maps.index(), least_workspace_algorithms(maps.program()));
    ASSERT_EQ(expander.expand(kept, expansion), "");
    Random random(seed);
    const auto choices = maps.choices();
    for (int trial = 0; trial < 10; ++trial) {
      Strategy strategy = kept;
      for (std::size_t i = 0; i < choices.size(); ++i) {
        constexpr Decision kDecisions[] = {Decision::keep, Decision::swap, Decision::recompute};
        const Decision decision = kDecisions[choices[i][random.below(choices[i].size())]];
        strategy.gaps[static_cast<std::size_t>(maps.all()[i].gap)] = decision;
        recomputed += decision == Decision::recompute ? 1 : 0;
      }
      for (TensorId t = 0; t < static_cast<TensorId>(maps.program().tensors.size()); ++t) {
        derive_drops(maps.index(), t, strategy.gaps);
      }
      EXPECT_EQ(expander.expand(strategy, expansion), "") << "trial " << trial;
    }
  }
  EXPECT_GT(recomputed, programs * 5 / 2);
}

}  // namespace
}  // namespace tidepool
