#include "bound/linear_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace tidepool {
namespace {

TEST(LinearProgram, FindsAnOptimumAndProvesIt) {
  LinearProgram lp;
  const auto x = lp.add_column(0, 10, -1);
  const auto y = lp.add_column(0, 10, -2);
  lp.at_most({{x, 1}, {y, 1}}, 4);
  lp.at_most({{x, 1}, {y, 3}}, 6);
  const auto s = lp.solve({});
  EXPECT_NEAR(s.objective, -5, 1e-9);
  EXPECT_NEAR(s.bound, -5, 1e-9);
  EXPECT_LE(s.bound, -5);
  EXPECT_NEAR(s.values[static_cast<std::size_t>(x)], 3, 1e-9);
}

/// Points drawn at random that keep every row: none may have less than the bound.
TEST(LinearProgram, NoPointThatKeepsTheRowsIsBelowTheBound) {
  int tight = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::size_t n = 1 + random.below(5);
    std::vector<double> point(n), cost(n);
    LinearProgram lp;
    for (std::size_t j = 0; j < n; ++j) {
      point[j] = random.uniform() * 4 - 2;
      cost[j] = random.uniform() * 2 - 1;
      lp.add_column(-2, 2, cost[j]);
    }
    for (std::uint64_t i = 0; i < 1 + random.below(6); ++i) {
      std::vector<LinearProgram::Term> row;
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) {
        const double factor = random.uniform() * 2 - 1;
        row.push_back({static_cast<std::int32_t>(j), factor});
        sum += factor * point[j];
      }
      if (random.below(4) == 0) {
        lp.equal(row, sum);
      } else {
        lp.at_most(row, sum + random.uniform());
      }
    }
    const auto s = lp.solve({});
    double at_point = 0;
    for (std::size_t j = 0; j < n; ++j) at_point += cost[j] * point[j];
    EXPECT_LE(s.bound, at_point + 1e-12);
    EXPECT_LE(s.bound, s.objective + 1e-9);
    tight += std::abs(s.bound - s.objective) < 1e-6;
  }
  EXPECT_EQ(tight, 200);
}

TEST(LinearProgram, StopsWhenAsked) {
  LinearProgram lp;
  lp.add_column(0, 1, 1);
  EXPECT_TRUE(lp.solve({Nanos::max(), [] { return true; }}).stopped);
}

/// Rows that bind one after the other: Clp needs some iterations for each.
LinearProgram many_iterations(int rows) {
  Random random(1);
  LinearProgram lp;
  for (int j = 0; j < rows; ++j) lp.add_column(0, 10, -1 - random.uniform());
  for (int i = 0; i < rows; ++i) {
    std::vector<LinearProgram::Term> row;
    for (int j = 0; j < rows; ++j) row.push_back({j, 0.1 + random.uniform()});
    lp.at_most(row, 50 + random.uniform());
  }
  return lp;
}

TEST(LinearProgram, AsksAgainAndAgainWhetherToStop) {
  const LinearProgram lp = many_iterations(60);
  int asked = 0;
  const auto whole = lp.solve({Nanos::max(), [&] { return ++asked < 0; }});
  EXPECT_FALSE(whole.stopped);
  EXPECT_GE(asked, 60);
}

TEST(LinearProgram, EndsAtOnceWhereverItIsStopped) {
  const LinearProgram lp = many_iterations(60);
  const double optimum = lp.solve({}).objective;
  for (const int last : {2, 5, 10, 20, 40}) {
    int asked = 0;
    const auto solution = lp.solve({Nanos::max(), [&] { return ++asked >= last; }});
    EXPECT_TRUE(solution.stopped);
    EXPECT_EQ(asked, last) << "nothing is begun after it";
    EXPECT_LE(solution.bound, optimum + 1e-6);
  }
}

}  // namespace
}  // namespace tidepool
