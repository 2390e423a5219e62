#include "bound/linear_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/at.h"
#include "base/invariant.h"
#include "bound/clp/clp_calls.h"

namespace tidepool {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::max();

/// What Clp takes before it asks for the first time: two copies of the program, one of them
/// presolved. Measured on programs of 1,370 to 91,281 terms: 0.7 MiB and up to 190 B a term.
Bytes taken_unasked(std::size_t terms) {
  constexpr Bytes kBytesOfATerm = 192;
  return kMiB + kBytesOfATerm * static_cast<Bytes>(terms);
}

}  // namespace

LinearProgram::Column LinearProgram::add_column(double lower, double upper, double cost) {
  invariant(lower <= upper && std::isfinite(lower) && std::isfinite(upper),
            "a column has finite bounds in order");
  lower_.push_back(lower);
  upper_.push_back(upper);
  cost_.push_back(cost);
  free_.push_back(false);
  return static_cast<Column>(lower_.size()) - 1;
}

LinearProgram::Column LinearProgram::add_free_column(double lower, double upper, double cost) {
  const Column column = add_column(lower, upper, cost);
  free_.back() = true;
  return column;
}

void LinearProgram::at_most(std::span<const Term> terms, double upper) {
  add_row(terms, -kInfinity, upper);
}

void LinearProgram::equal(std::span<const Term> terms, double value) {
  add_row(terms, value, value);
}

void LinearProgram::add_row(std::span<const Term> terms, double lower, double upper) {
  for (const Term& term : terms) {
    row_columns_.push_back(term.column);
    row_factors_.push_back(term.factor);
  }
  row_start_.push_back(static_cast<int>(row_columns_.size()));
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
}

LinearProgram::Solution LinearProgram::solve(const SolveOptions& options) const {
  const SolveWithClp with_clp = find_clp();
  if (with_clp == nullptr) throw std::runtime_error(clp_missing());
  if (std::min(options.stop.room(), options.give_up.room()) < taken_unasked(row_columns_.size())) {
    Solution stopped;
    stopped.stopped = true;
    stopped.bound = certified(std::vector<double>(row_lower_.size()));
    return stopped;
  }
  std::vector<double> lower = lower_;
  std::vector<double> upper = upper_;
  for (std::size_t c = 0; c < free_.size(); ++c) {
    if (!free_[c]) continue;
    lower[c] = -kInfinity;
    upper[c] = kInfinity;
  }
  ClpProblem problem;
  problem.rows = static_cast<int>(row_lower_.size());
  problem.columns = static_cast<int>(lower_.size());
  problem.lower = lower.data();
  problem.upper = upper.data();
  problem.cost = cost_.data();
  problem.row_lower = row_lower_.data();
  problem.row_upper = row_upper_.data();
  problem.row_start = row_start_.data();
  problem.row_columns = row_columns_.data();
  problem.row_factors = row_factors_.data();
  problem.seconds = to_seconds(options.time_limit);
  problem.whom = &options;
  problem.enough = [](const void* whom) {
    const auto& asked = *static_cast<const SolveOptions*>(whom);
    return asked.stop.requested() || asked.give_up.requested();
  };
  std::vector<double> prices(row_lower_.size());
  std::vector<double> values(lower_.size());
  ClpSolution found{prices.data(), values.data()};
  const ClpEnd end = with_clp(problem, found);
  Solution solution;
  solution.stopped = end == ClpEnd::stopped;
  solution.bound = certified(prices);
  if (end != ClpEnd::optimal) return solution;
  solution.values = std::move(values);
  solution.objective = found.objective;
  return solution;
}

/// See Note [Certificate].
double LinearProgram::certified(std::span<const double> prices) const {
  std::vector<double> reduced = cost_;
  double sum = 0;
  double magnitude = 0;  // of the terms, for what rounding may have added
  const auto add = [&](double term) {
    sum += term;
    magnitude += std::abs(term);
  };
  for (std::size_t i = 0; i < row_lower_.size(); ++i) {
    const double side = prices[i] > 0 ? row_lower_[i] : row_upper_[i];
    if (prices[i] == 0 || std::abs(side) == kInfinity) continue;  // a price of 0 will do as well
    add(prices[i] * side);
    for (int k = row_start_[i]; k < row_start_[i + 1]; ++k) {
      reduced[at(row_columns_[at(k)])] -= prices[i] * row_factors_[at(k)];
    }
  }
  for (std::size_t j = 0; j < reduced.size(); ++j) {
    add(reduced[j] * (reduced[j] > 0 ? lower_[j] : upper_[j]));
  }
  constexpr double kRounding = 1e-12;
  return sum - kRounding * magnitude;
}

}  // namespace tidepool
