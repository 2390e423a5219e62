// What a session takes for an iteration, where calls alone leave doubts.
#include <gtest/gtest.h>

#include "session_program.h"

namespace tidepool::testing {
namespace {

constexpr Bytes kBytes = 64 * kKiB;

/// The same program on plain memory and in a session, planned after five iterations of twelve.
template <class Program>
SessionReport expect_planned(Bytes budget) {
  PlainBlocks plain;
  Program on_plain(plain);
  SessionSpec spec = session_spec(budget);
  spec.plan_beside = false;
  Session session(std::move(spec));
  SessionBlocks blocks(session);
  Program in_session(blocks);
  for (int i = 0; i < 12; ++i) {
    on_plain.iteration();
    in_session.iteration();
    if (i == 4) {
      EXPECT_TRUE(session.plan_now());
    }
  }
  const SessionReport report = session.report();
  EXPECT_EQ(in_session.sum(), on_plain.sum());
  EXPECT_EQ(report.why_no_plan, "");
  EXPECT_GE(report.planned_iterations, 6);
  EXPECT_EQ(report.left_plans, 0);
  EXPECT_LE(report.device_peak, budget);
  return report;
}

/// Forwards only, each layer the calls of the one before.
template <bool kWeights>
class EqualLayers {
 public:
  static constexpr int kLayers = 12;
  explicit EqualLayers(Blocks& blocks) : b_(blocks), result_(b_.malloc(kBytes)) {
    b_.mix("result", {.writes = {result_}});
    for (int i = 0; kWeights && i < kLayers; ++i) {
      weights_.push_back(b_.malloc(kBytes));
      b_.mix("weight", {.writes = {weights_.back()}});
    }
  }
  void iteration() {
    Blocks::Id x = b_.malloc(kBytes);
    b_.mix("layer", {.reads = {result_}, .writes = {x}});
    for (int i = 0; i < kLayers; ++i) {
      const Blocks::Id y = b_.malloc(kBytes);
      std::vector<Blocks::Id> reads{x};
      if (kWeights) reads.push_back(weights_[at(i)]);
      b_.mix("layer", {.reads = reads, .writes = {y}});
      b_.free(x);
      x = y;
    }
    b_.mix("layer", {.reads = {x}, .updates = {result_}});
    b_.free(x);
  }
  std::uint64_t sum() { return b_.sum(result_); }

 private:
  Blocks& b_;
  Blocks::Id result_;
  std::vector<Blocks::Id> weights_;
};

TEST(Iteration, TwelveEqualLayersAreNone) {
  constexpr std::int64_t kCalls = 2 + 3 * 12 + 2;
  EXPECT_EQ(expect_planned<EqualLayers<true>>(8 * kBytes).iteration_calls, kCalls);
  EXPECT_EQ(expect_planned<EqualLayers<false>>(3 * kBytes).iteration_calls, kCalls);
}

/// All blocks are there before: an iteration is ops alone.
class OpsAlone {
 public:
  static constexpr int kLayers = 8;
  explicit OpsAlone(Blocks& blocks) : b_(blocks) {
    for (int i = 0; i <= kLayers; ++i) {
      for (auto* list : {&x_, &weights_}) {
        list->push_back(b_.malloc(kBytes));
        b_.mix("first" + std::to_string(i), {.writes = {list->back()}});
      }
    }
  }
  void iteration() {
    b_.mix("feed", {.writes = {x_[0]}});
    for (int i = 0; i < kLayers; ++i) {
      b_.mix("forward", {.reads = {x_[at(i)], weights_[at(i)]}, .writes = {x_[at(i + 1)]}});
    }
    for (int i = kLayers; i > 0; --i) {
      b_.mix("backward", {.reads = {x_[at(i)], x_[at(i - 1)]}, .updates = {weights_[at(i)]}});
    }
  }
  std::uint64_t sum() {
    std::uint64_t all = 0;
    for (const Blocks::Id w : weights_) all = hash_combine(all, b_.sum(w));
    return all;
  }

 private:
  Blocks& b_;
  std::vector<Blocks::Id> x_, weights_;
};

TEST(Iteration, OneOfOpsAloneIsPlanned) {
  const SessionReport report = expect_planned<OpsAlone>(11 * kBytes);
  EXPECT_EQ(report.iteration_calls, 1 + 2 * OpsAlone::kLayers);
  EXPECT_GT(report.moved, 0);
}

/// The same from a session that looks by itself.
TEST(Iteration, OneOfOpsAloneIsFoundBesideTheProgram) {
  Session session(session_spec(11 * kBytes));
  SessionBlocks blocks(session);
  OpsAlone program(blocks);
  // As long as it takes; the test's own time limit is that of ctest.
  while (session.report().planned_iterations < 2) program.iteration();
}

/// Twelve layers of one name and nothing else: the calls alone do not say where an iteration ends.
TEST(Iteration, WhereNoneIsFoundTheReportSaysWhy) {
  SessionSpec spec = session_spec(4 * kBytes);
  spec.plan_beside = false;
  Session session(std::move(spec));
  SessionBlocks b(session);
  const Blocks::Id x = b.malloc(kBytes);
  b.mix("first", {.writes = {x}});
  std::vector<Blocks::Id> weights;
  for (int i = 0; i < 12; ++i) {
    weights.push_back(b.malloc(kBytes));
    b.mix("first", {.writes = {weights.back()}});
  }
  EXPECT_EQ(session.report().why_no_plan, "");
  const auto iterations = [&](const std::string& last) {
    for (int n = 0; n < 6; ++n) {
      for (int i = 0; i < 12; ++i) {
        b.mix(i < 11 ? "layer" : last, {.reads = {x}, .updates = {weights[at(i)]}});
      }
    }
  };
  iterations("layer");
  EXPECT_FALSE(session.plan_now());
  EXPECT_THAT(session.report().why_no_plan,
              ::testing::HasSubstr("no iteration was found in 98 calls"));
  for (int more = 0; more < 3; ++more) iterations("last");
  EXPECT_TRUE(session.plan_now());
  EXPECT_EQ(session.report().why_no_plan, "");
  iterations("last");
  EXPECT_GE(session.report().planned_iterations, 4);
}

}  // namespace
}  // namespace tidepool::testing
