// Two evaluators say the same of a strategy: results, lists and expansions.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lower/evaluate.h"

namespace tidepool::testing {

inline void expect_same_step(const Step& a, const Step& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.stream, b.stream);
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.end, b.end);
  for (std::size_t s = 0; s < a.waits.size(); ++s) {
    EXPECT_EQ(a.waits[s].index, b.waits[s].index);
    EXPECT_EQ(a.waits[s].iteration, b.waits[s].iteration);
  }
}

inline std::vector<std::pair<OpId, Nanos>> stalls(Evaluator& evaluator) {
  std::vector<std::pair<OpId, Nanos>> list;
  evaluator.each_delay([&list](OpId op, Nanos stall) { list.emplace_back(op, stall); });
  return list;
}

inline void expect_same(const Evaluation& a, Evaluator& used, const Evaluation& b,
                        Evaluator& fresh) {
  EXPECT_EQ(a.feasible, b.feasible);
  EXPECT_EQ(a.stuck, b.stuck);
  EXPECT_EQ(a.refused, b.refused);
  EXPECT_EQ(a.iteration_time, b.iteration_time);
  EXPECT_EQ(a.compute_time, b.compute_time);
  EXPECT_EQ(a.copy_time, b.copy_time);
  EXPECT_EQ(a.peak_load, b.peak_load);
  if (!a.feasible || !b.feasible) return;
  const auto stalls_without_list = stalls(used);
  ASSERT_EQ(used.steps().size(), fresh.steps().size());
  EXPECT_EQ(stalls_without_list, stalls(fresh));
  for (std::size_t i = 0; i < used.steps().size(); ++i) {
    expect_same_step(used.steps()[i], fresh.steps()[i]);
  }
  EXPECT_EQ(used.expansion().operands, fresh.expansion().operands);
  EXPECT_EQ(used.expansion().boundary, fresh.expansion().boundary);
  EXPECT_EQ(used.expansion().clones, fresh.expansion().clones);
  ASSERT_EQ(used.load().size(), fresh.load().size());
  EXPECT_TRUE(std::equal(used.load().begin(), used.load().end(), fresh.load().begin()));
}

}  // namespace tidepool::testing
