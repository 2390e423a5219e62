#include "planners/toolkit/timeline_search.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ir/load_profile.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;
using testing::byte_a_nanosecond;
using testing::ProgramBuilder;
using Clock = std::chrono::steady_clock;

constexpr Nanos kOp{100'000};
constexpr Bytes kLayer = 40'000;
constexpr int kLayers = 8;

/// Forward writes one tensor a layer, backward reads them in reverse: the load is a triangle.
Program layers() {
  ProgramBuilder b;
  std::vector<TensorId> x;
  for (int i = 0; i < kLayers; ++i) x.push_back(b.tensor("x" + std::to_string(i), kLayer));
  for (int i = 0; i < kLayers; ++i) {
    if (i == 0) {
      b.device("f0", {{x[0], write}}, kOp);
    } else {
      b.device("f" + std::to_string(i), {{x[i - 1], read}, {x[i], write}}, kOp);
    }
  }
  for (int i = kLayers; i-- > 0;) b.device("b" + std::to_string(i), {{x[i], read}}, kOp);
  return b.build();
}

class Layers : public ::testing::Test {
 protected:
  Layers()
      : program_(layers()),
        machine_(byte_a_nanosecond()),
        lowering_(program_, machine_),
        algorithms_(least_workspace_algorithms(program_)),
        search_(lowering_, algorithms_) {}

  AwayGaps run(Bytes limit, bool compact = false) {
    TimelineSearch::Options options;
    // A compact search ends by its number of evaluations, on a machine however slow.
    options.allowance = Clock::now() + std::chrono::minutes(10);
    options.stop = [this, compact] { return compact && search_.evaluations() > 20'000; };
    options.compact = compact;
    return search_.run(limit, AwayGaps(lowering_.index().gaps().size(), 0), options);
  }
  static int count(const AwayGaps& away) { return std::accumulate(away.begin(), away.end(), 0); }

  Program program_;
  Machine machine_;
  Lowering lowering_;
  std::vector<std::int32_t> algorithms_;
  TimelineSearch search_;
};

TEST_F(Layers, NothingLeavesWhereEverythingFits) {
  EXPECT_EQ(count(run(kLayers * kLayer)), 0);
  EXPECT_EQ(search_.excess(), 0);
  EXPECT_EQ(search_.evaluations(), 1);
}

/// Copies are faster than layers, so all but what is about to be used can be away.
TEST_F(Layers, WhatItFindsNeedsNoStallsByTheEvaluator) {
  for (const Bytes limit : {6 * kLayer, 5 * kLayer, 4 * kLayer}) {
    const AwayGaps away = run(limit);
    ASSERT_EQ(search_.excess(), 0) << limit;
    Strategy strategy = keep_everything(program_, lowering_.index(), algorithms_);
    for (std::size_t g = 0; g < away.size(); ++g) {
      if (away[g] != 0) strategy.gaps[g] = Decision::swap;
    }
    const Evaluation e = lowering_.evaluator().evaluate(strategy, {limit, true, Nanos{0}});
    EXPECT_TRUE(e.feasible);
    EXPECT_EQ(e.stall(), Nanos{0}) << limit;
  }
}

TEST_F(Layers, SaysByHowMuchTheLoadExceedsWhatCannotBeMet) {
  // An op needs two tensors at once; with one nothing can be found.
  TimelineSearch::Options options;
  options.allowance = Allowance::of(2000);
  search_.run(kLayer, AwayGaps(lowering_.index().gaps().size(), 0), options);
  EXPECT_GE(search_.excess(), kLayer);
}

/// A quarter of the load with stalls as long as the ops: copies have the time they need.
TEST_F(Layers, StallsGiveCopiesTime) {
  const auto excess_after = [this](Bytes limit) {
    TimelineSearch::Options options;
    options.allowance = Allowance::of(2000);
    search_.run(limit, AwayGaps(lowering_.index().gaps().size(), 0), options);
    return search_.excess();
  };
  ASSERT_GT(excess_after(5 * kLayer / 2), 0);
  search_.set_stalls(std::vector<Nanos>(program_.ops.size(), kOp));
  EXPECT_EQ(excess_after(5 * kLayer / 2), 0);
  search_.set_stalls({});
  EXPECT_GT(excess_after(5 * kLayer / 2), 0);
}

TEST(TimelineSearch, OtherAlgorithmsAreAsIfItHadBegunWithThem) {
  Program program = layers();
  for (Op& op : program.ops) op.algorithms.push_back({"fast", kOp / 2, kLayer, true});
  const Machine machine = byte_a_nanosecond();
  Lowering lowering(program, machine);
  const std::vector<std::int32_t> least(program.ops.size(), 0);
  const std::vector<std::int32_t> fast(program.ops.size(), 1);
  TimelineSearch begun(lowering, fast);
  TimelineSearch changed(lowering, least);
  changed.set_algorithms(fast);
  changed.set_stalls({});
  TimelineSearch::Options options;
  options.allowance = Allowance::of(500);
  const AwayGaps nothing(lowering.index().gaps().size(), 0);
  EXPECT_EQ(begun.run(5 * kLayer, nothing, options), changed.run(5 * kLayer, nothing, options));
  EXPECT_EQ(begun.excess(), changed.excess());
  EXPECT_EQ(begun.evaluations(), changed.evaluations());
}

TEST_F(Layers, ACompactStateHasMoreAwayThanTheLimitAsks) {
  const int needed = count(run(6 * kLayer));
  const int compact = count(run(6 * kLayer, true));
  EXPECT_EQ(search_.excess(), 0);
  EXPECT_GT(compact, needed);
}

}  // namespace
}  // namespace tidepool
