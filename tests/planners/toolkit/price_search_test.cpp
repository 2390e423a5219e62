#include "planners/toolkit/price_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/at.h"
#include "ir/load_profile.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;
using testing::byte_a_nanosecond;
using testing::ProgramBuilder;

constexpr Nanos kPricedOp{100'000};
constexpr Bytes kPricedLayer = 40'000;
constexpr int kPricedLayers = 12;

/// Forward makes one tensor a layer of the one before, backward reads them in reverse: the load is
/// a triangle.
Program priced_layers(bool recomputable) {
  ProgramBuilder b;
  std::vector<TensorId> x;
  for (int i = 0; i < kPricedLayers; ++i)
    x.push_back(b.tensor("x" + std::to_string(i), kPricedLayer));
  for (int i = 0; i < kPricedLayers; ++i) {
    std::vector<Access> accesses;
    if (i > 0) accesses.push_back({x[i - 1], read});
    accesses.push_back({x[i], write});
    b.device("f" + std::to_string(i), accesses, kPricedOp);
    b.last().recomputable = recomputable;
  }
  for (int i = kPricedLayers; i-- > 0;) {
    b.device("b" + std::to_string(i), {{x[i], read}}, kPricedOp);
    b.last().recomputable = false;
  }
  return b.build();
}

struct PriceSubject {
  PriceSubject(Program made, Machine on)
      : program(std::move(made)),
        machine(std::move(on)),
        lowering(program, machine),
        algorithms(least_workspace_algorithms(program)),
        remakable(remakable_gaps(program, lowering.index(), machine, algorithms)),
        search(lowering, algorithms, remakable) {}

  /// Of the best of the states that are found; Nanos::max(): none is feasible.
  Nanos least_stall(Bytes limit) {
    Nanos least = Nanos::max();
    for (const AwayGaps& away : search.run(limit, {})) {
      Strategy strategy = keep_everything(program, lowering.index(), algorithms);
      for (std::size_t g = 0; g < away.size(); ++g) {
        if (away[g] == kStays) continue;
        strategy.gaps[g] = away[g] == kRemade ? Decision::recompute : Decision::swap;
      }
      const Evaluation e = lowering.evaluator().evaluate(strategy, {limit});
      if (!e.feasible) continue;
      least = std::min(least, e.iteration_time - compute_time(program, algorithms));
    }
    return least;
  }

  Program program;
  Machine machine;
  Lowering lowering;
  std::vector<std::int32_t> algorithms;
  std::vector<RemakableGap> remakable;
  PriceSearch search;
};

/// So slow that a tensor takes as long as some layers.
Machine priced_slow_link() {
  Machine machine = byte_a_nanosecond();
  machine.to_host() = {1e8, Nanos{0}};
  machine.to_device() = {1e8, Nanos{0}};
  return machine;
}

TEST(PriceSearch, NothingLeavesWhereEverythingFits) {
  PriceSubject subject(priced_layers(true), byte_a_nanosecond());
  const std::vector<AwayGaps> states = subject.search.run(kPricedLayers * kPricedLayer, {});
  ASSERT_FALSE(states.empty());
  for (const AwayGaps& away : states) EXPECT_EQ(std::ranges::count(away, kStays), std::ssize(away));
}

/// Copies are faster than layers, so all but what is about to be used can be away.
TEST(PriceSearch, WhatLeavesInTimeNeedsNoStallsByTheEvaluator) {
  for (const Bytes limit : {8 * kPricedLayer, 6 * kPricedLayer, 5 * kPricedLayer}) {
    PriceSubject subject(priced_layers(false), byte_a_nanosecond());
    ASSERT_TRUE(subject.remakable.empty());
    EXPECT_EQ(subject.least_stall(limit), Nanos{0}) << limit;
  }
}

/// Everything but two layers in the time of three ops a layer: where the link is too slow for that,
/// what is made again needs one clone a layer.
TEST(PriceSearch, WhereTheLinkIsSlowGapsAreMadeAgain) {
  constexpr Bytes kLimit = 7 * kPricedLayer;
  PriceSubject copied(priced_layers(false), priced_slow_link());
  PriceSubject either(priced_layers(true), priced_slow_link());
  ASSERT_FALSE(either.remakable.empty());
  const Nanos with_clones = either.least_stall(kLimit);
  ASSERT_NE(with_clones, Nanos::max());
  EXPECT_LT(with_clones, copied.least_stall(kLimit));
  EXPECT_LE(with_clones, kPricedLayers * kPricedOp);
}

TEST(PriceSearch, WhatStaysLeavesRoomForTheLoad) {
  constexpr Bytes kLimit = 3 * kPricedLayer;
  PriceSubject subject(priced_layers(false), priced_slow_link());
  EXPECT_NE(subject.least_stall(kLimit), Nanos::max()) << "the link alone would rather keep";
}

TEST(PriceSearch, RepeatsAndGoesOnFromThePricesBefore) {
  constexpr Bytes kLimit = 6 * kPricedLayer;
  PriceSubject one(priced_layers(true), priced_slow_link());
  PriceSubject other(priced_layers(true), priced_slow_link());
  EXPECT_EQ(one.search.run(kLimit, {}), other.search.run(kLimit, {}));
  // Few sweeps are enough then, which they are not from nothing.
  PriceSearch::Options few;
  few.sweeps = few.states = 1;
  const AwayGaps after = one.search.run(kLimit, few).front();
  PriceSubject fresh(priced_layers(true), priced_slow_link());
  EXPECT_NE(after, fresh.search.run(kLimit, few).front());
}

TEST(PriceSearch, OtherAlgorithmsAreAsIfItHadBegunWithThem) {
  Program program = priced_layers(false);
  for (Op& op : program.ops) op.algorithms.push_back({"fast", kPricedOp / 2, kPricedLayer, true});
  const Machine machine = byte_a_nanosecond();
  Lowering lowering(program, machine);
  const std::vector<std::int32_t> least(program.ops.size(), 0);
  const std::vector<std::int32_t> fast(program.ops.size(), 1);
  PriceSearch begun(lowering, fast, {});
  PriceSearch changed(lowering, least, {});
  changed.set_algorithms(fast);
  EXPECT_EQ(begun.run(6 * kPricedLayer, {}), changed.run(6 * kPricedLayer, {}));
}

TEST(PriceSearch, StopsWhenAsked) {
  PriceSubject subject(priced_layers(true), byte_a_nanosecond());
  PriceSearch::Options options;
  options.stop = [] { return true; };
  EXPECT_TRUE(subject.search.run(6 * kPricedLayer, options).empty());
}

}  // namespace
}  // namespace tidepool
