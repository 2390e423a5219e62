#include "planners/toolkit/recomputation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "lower/expand.h"
#include "support/attacks.h"
#include "support/odd_program.h"
#include "support/random_program.h"
#include "support/sanitized.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;

/// Four layers forwards and backwards in one round: x0 is fed, forward k makes x(k+1).
class RecomputationOfAChain : public ::testing::Test {
 protected:
  /// Of the tensor's values, the gap that ends in backward.
  [[nodiscard]] GapId gap(std::string_view tensor) const {
    GapId found = kNone;
    for (GapId g = 0; g < static_cast<GapId>(index_.gaps().size()); ++g) {
      const auto t = static_cast<std::size_t>(index_.gaps()[static_cast<std::size_t>(g)].tensor);
      if (program_.tensors[t].name == tensor) found = g;
    }
    return found;
  }
  [[nodiscard]] std::optional<std::vector<std::string>> chain(std::string_view tensor) {
    const auto ops = Recomputation(program_, index_).chain(gap(tensor), builder_.strategy());
    if (!ops) return std::nullopt;
    std::vector<std::string> names;
    for (const OpId op : *ops) names.push_back(program_.ops[static_cast<std::size_t>(op)].name);
    return names;
  }

  Program program_ = **testing::SubBatchWorkload().program(8);
  AccessIndex index_{program_};
  StrategyBuilder builder_{program_, index_, least_workspace_algorithms(program_)};
};

TEST_F(RecomputationOfAChain, BeginsAtTheNearestValueThatIsThere) {
  EXPECT_THAT(*chain("x3@0"), ElementsAre("forward2@0"));
  builder_.recompute(gap("x2@0"));
  EXPECT_THAT(*chain("x3@0"), ElementsAre("forward1@0", "forward2@0"));
  builder_.away(gap("x1@0"));  // the host has it
  EXPECT_THAT(*chain("x3@0"), ElementsAre("forward1@0", "forward2@0"));
  builder_.recompute(gap("x1@0"));
  EXPECT_THAT(*chain("x3@0"), ElementsAre("forward0@0", "forward1@0", "forward2@0"));
}

TEST_F(RecomputationOfAChain, ItsTimeIsThatOfItsOps) {
  builder_.recompute(gap("x2@0"));
  Recomputation recomputation(program_, index_);
  const auto ops = recomputation.chain(gap("x3@0"), builder_.strategy());
  EXPECT_EQ(recomputation.time(*ops, builder_.strategy()), Nanos{2 * (400 * 8 + 200)});
}

TEST_F(RecomputationOfAChain, WhatMustNotRunAgainEndsIt) {
  program_.ops[2].recomputable = false;  // forward 1 makes x2
  EXPECT_FALSE(chain("x2@0"));
  EXPECT_THAT(*chain("x3@0"), ElementsAre("forward2@0"));
  builder_.recompute(gap("x2@0"));
  EXPECT_FALSE(chain("x3@0"));
  builder_.recompute(gap("x3@0"));
  EXPECT_EQ(take_back_impossible(program_, index_, true, builder_), 1U);
  EXPECT_EQ(builder_.decision(gap("x2@0")), Decision::swap);
  EXPECT_EQ(builder_.decision(gap("x3@0")), Decision::recompute);
}

TEST_F(RecomputationOfAChain, SourcesAreNeededWhereTheChainReadsThem) {
  builder_.away(gap("x1@0"));
  builder_.recompute(gap("x2@0"));
  builder_.recompute(gap("x3@0"));
  const auto needed = needed_before(program_, index_, builder_.strategy());
  const auto op = [&](std::string_view tensor) {
    const OpId before = needed[static_cast<std::size_t>(gap(tensor))];
    return before == kNone ? "" : program_.ops[static_cast<std::size_t>(before)].name;
  };
  EXPECT_EQ(op("x1@0"), "backward3@0") << "which reads x3";
  EXPECT_EQ(op("x3@0"), "");
}

/// A random strategy of swaps and keeps, and for each gap alone what expand says of recomputing it.
void expect_as_expanded(const Program& program, std::uint64_t seed) {
  const AccessIndex index(program);
  Expander expander(program, index);
  Expansion expansion;
  Random random(seed);
  StrategyBuilder builder(program, index, least_workspace_algorithms(program));
  if (!expander.expand(builder.strategy(), expansion).empty()) return;  // none is accepted
  const auto gaps = static_cast<GapId>(index.gaps().size());
  const auto decidable = [&](GapId g) {
    const Gap& gap = index.gaps()[static_cast<std::size_t>(g)];
    return gap.kind == GapKind::device;
  };
  for (GapId g = 0; g < gaps; ++g) {
    if (decidable(g) && random.below(3) == 0) builder.away(g);
  }
  for (GapId g = 0; g < gaps; ++g) {
    const Gap& gap = index.gaps()[static_cast<std::size_t>(g)];
    if (!decidable(g) || gap.dead) continue;
    SCOPED_TRACE(fmt::format("gap {}", g));
    const Decision before = builder.decision(g);
    const auto chain = Recomputation(program, index).chain(g, builder.strategy());
    builder.recompute(g);
    const std::string refused = expander.expand(builder.strategy(), expansion);
    if (chain) {
      EXPECT_EQ(refused, "");
      EXPECT_EQ(chain->size(), static_cast<std::size_t>(expansion.clones));
    } else {
      EXPECT_TRUE(!refused.empty() || expansion.clones == 0) << "it was copied in";
    }
    before == Decision::keep ? builder.keep(g) : builder.away(g);
  }
  // And many at a time.
  for (GapId g = 0; g < gaps; ++g) {
    if (decidable(g) && random.below(2) == 0) builder.recompute(g);
  }
  take_back_impossible(program, index, random.below(2) == 0, builder);
  EXPECT_EQ(expander.expand(builder.strategy(), expansion), "");
}

TEST(Recomputation, SaysOfRandomProgramsWhatExpandDoes) {
  for (std::uint64_t seed = 0; seed < testing::some(testing::usual_or(100U, 60U), 300U); ++seed) {
    SCOPED_TRACE(seed);
    expect_as_expanded(testing::random_program(seed % 40), seed);
    expect_as_expanded(testing::odd_program(seed, testing::HostUse::plain), seed);
    testing::OddShape recorded;
    recorded.recorded = true;
    expect_as_expanded(testing::odd_program(seed, testing::HostUse::none, recorded), seed);
  }
}

}  // namespace
}  // namespace tidepool
