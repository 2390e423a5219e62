#include "planners/toolkit/bayesian_optimisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/random.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;

struct Problem {
  const char* name;
  Box box;
  Point start;
  std::function<double(const Point&)> f;
  double least;
};

/// Minimum at (0.3, -0.2, 0.1, -0.6).
double bowl(const Point& x) {
  const Point centre{0.3, -0.2, 0.1, -0.6};
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - centre[i]) * (x[i] - centre[i]);
  return sum;
}

double branin(const Point& x) {
  constexpr double kPi = std::numbers::pi;
  const double a = x[1] - 5.1 / (4 * kPi * kPi) * x[0] * x[0] + 5 / kPi * x[0] - 6;
  return a * a + 10 * (1 - 1 / (8 * kPi)) * std::cos(x[0]) + 10;
}

/// Steps, as the overhead of a selection has: only the direction counts, and that in eighths.
double steps(const Point& x) {
  double length = 1e-9;
  for (const double v : x) length += v * v;
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double wanted = i == 2 ? -0.7 : 0.4;
    sum += std::abs(std::round(8 * x[i] / std::sqrt(length)) / 8 - wanted);
  }
  return sum;
}

std::vector<Problem> problems() {
  return {{"bowl", {Point(4, -1.0), Point(4, 1.0)}, Point(4, 0.9), bowl, 0},
          {"branin", {{-5, 0}, {10, 15}}, {0, 14}, branin, 0.397887},
          {"steps", {Point(4, -1.0), Point(4, 1.0)}, Point(4, 0.9), steps, 0}};
}

double random_search(const Problem& problem, int evaluations, std::uint64_t seed) {
  Random random(seed);
  double best = problem.f(problem.start);
  for (int i = 0; i < evaluations; ++i) {
    Point p;
    for (std::size_t d = 0; d < problem.box.low.size(); ++d) {
      p.push_back(problem.box.low[d] +
                  random.uniform() * (problem.box.high[d] - problem.box.low[d]));
    }
    best = std::min(best, problem.f(p));
  }
  return best;
}

TEST(BayesianOptimisation, BeatsRandomSearch) {
  constexpr int kSeeds = 8;
  for (const Problem& problem : problems()) {
    double bayesian = 0;
    double random = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      BayesianOptions options;
      options.seed = seed;
      bayesian += bayesian_minimise(problem.f, problem.box, {&problem.start, 1}, options).value;
      random += random_search(problem, options.evaluations, seed);
    }
    const double least = kSeeds * problem.least;
    EXPECT_LT(bayesian - least, (random - least) / 2) << problem.name;
  }
}

TEST(BayesianOptimisation, FindsTheMinimumOfSmoothFunctions) {
  const std::vector<Problem> all = problems();
  for (const std::size_t i : {0U, 1U}) {
    const auto found = bayesian_minimise(all[i].f, all[i].box, {&all[i].start, 1});
    EXPECT_NEAR(found.value, all[i].least, 0.05) << all[i].name;
    EXPECT_EQ(found.value, all[i].f(found.x));
    EXPECT_EQ(found.evaluations, 33);
  }
}

TEST(BayesianOptimisation, IsNeverWorseThanItsStartingPoints) {
  // Nothing but the second starting point is any good.
  const std::vector<Point> start{{0, 0}, {0.5, 0.5}, {1, 1}};
  const auto needle = [&](const Point& x) { return x == start[1] ? -1.0 : x[0] + x[1]; };
  const auto found = bayesian_minimise(needle, {{0, 0}, {1, 1}}, start);
  EXPECT_EQ(found.value, -1);
  EXPECT_EQ(found.x, start[1]);
}

TEST(BayesianOptimisation, StaysInTheBoxAndRepeats) {
  const std::vector<Problem> all = problems();
  const Problem& branin = all[1];
  std::vector<Point> asked;
  const auto f = [&](const Point& x) {
    for (std::size_t d = 0; d < x.size(); ++d) {
      EXPECT_GE(x[d], branin.box.low[d]);
      EXPECT_LE(x[d], branin.box.high[d]);
    }
    asked.push_back(x);
    return branin.f(x);
  };
  bayesian_minimise(f, branin.box, {&branin.start, 1});
  const std::vector<Point> first = std::exchange(asked, {});
  bayesian_minimise(f, branin.box, {&branin.start, 1});
  EXPECT_EQ(asked, first);
  asked.clear();
  BayesianOptions other;
  other.seed = 2;
  bayesian_minimise(f, branin.box, {&branin.start, 1}, other);
  EXPECT_NE(asked, first);
}

TEST(BayesianOptimisation, CopesWithInfiniteAndEqualValues) {
  constexpr double kNothing = std::numeric_limits<double>::infinity();
  const Point start{0.9, 0.9};
  const Box box{{0, 0}, {1, 1}};
  const auto half = [&](const Point& x) { return x[0] > 0.5 ? kNothing : x[0] + x[1]; };
  EXPECT_LT(bayesian_minimise(half, box, {&start, 1}).value, 0.1);
  const auto nowhere = bayesian_minimise([&](const Point&) { return kNothing; }, box, {&start, 1});
  EXPECT_EQ(nowhere.value, kNothing);
  EXPECT_EQ(nowhere.x, start);
  const auto flat = bayesian_minimise([](const Point&) { return 3.0; }, box, {&start, 1});
  EXPECT_EQ(flat.value, 3);
  EXPECT_EQ(flat.x, start);
}

TEST(BayesianOptimisation, StopsWhenToldOrWhenTheValueIsEnough) {
  const std::vector<Point> start{{0.2}, {0.4}, {0.6}};
  const Box box{{0}, {1}};
  const auto f = [](const Point& x) { return x[0]; };
  BayesianOptions options;
  options.enough = 0.2;
  const auto enough = bayesian_minimise(f, box, start, options);
  EXPECT_EQ(enough.evaluations, 1);
  EXPECT_THAT(enough.x, ElementsAre(0.2));
  options = {};
  int asked = 0;
  options.stop = [&] { return ++asked > 5; };
  EXPECT_EQ(bayesian_minimise(f, box, start, options).evaluations, 5);
  options.stop = [] { return true; };
  EXPECT_TRUE(bayesian_minimise(f, box, start, options).x.empty());
}

}  // namespace
}  // namespace tidepool
