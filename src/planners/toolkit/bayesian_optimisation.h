// Bayesian optimisation: the minimum of a function that is expensive to evaluate, from few
// evaluations (Snoek, Larochelle and Adams, 2012).
//
// A Gaussian process with a Matern 5/2 kernel is fitted to the values known so far. Its length
// scale and noise are those of the largest marginal likelihood on a grid. The next point is where
// the expected improvement on the best value is largest, among random points of the box and random
// steps from the best points.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/stop.h"

namespace tidepool {

using Point = std::vector<double>;

struct Box {
  Point low;
  Point high;  ///< larger than `low` in every coordinate
};

struct BayesianOptions {
  int evaluations = 32;  ///< after those of the starting points
  std::uint64_t seed = 1;
  double enough = -std::numeric_limits<double>::infinity();  ///< stops at such a value
  Stop stop;                                                 ///< asked before each evaluation
};

struct BayesianMinimum {
  Point x;  ///< empty: cancelled before the first evaluation
  double value = std::numeric_limits<double>::infinity();
  int evaluations = 0;  ///< starting points included
};

/// The smallest value found; the first of equals. `start` has at least one point; each is evaluated
/// first, so the result is never worse than any of them. A value may be infinite: nothing there.
/// The same seed and function give the same points.
BayesianMinimum bayesian_minimise(const std::function<double(const Point&)>& f, const Box& box,
                                  std::span<const Point> start,
                                  const BayesianOptions& options = {});

}  // namespace tidepool
