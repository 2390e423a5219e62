// A linear program, minimised by Clp, and a lower bound on its optimum that does not trust Clp.
//
// Note [Certificate]. Any prices y of the rows give a lower bound on the optimum: the least that
// c x can be while every row is weighed with its price instead of being kept is
//   sum over rows of y_i * (the side that y_i pushes to) + sum over columns of min(d_j * x_j),
// with d = c - y A and x_j between its bounds. Clp's prices are taken as a proposal and the sum is
// made here, so neither its tolerances nor a wrong verdict can make the bound too high. It is
// finite because every column has finite bounds. It loses what Clp's prices are off by, times all
// that columns may be: the module polishes them. Two bounds of which one cannot be above the other
// may then differ the wrong way by the nanosecond that they are rounded to, and no more.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "base/stop.h"
#include "base/time.h"

namespace tidepool {

struct SolveOptions {
  Nanos time_limit = Nanos::max();
  Stop stop;       ///< asked at every iteration of Clp
  Stop give_up{};  ///< asked as often; as if the time were up
};

class LinearProgram {
 public:
  using Column = std::int32_t;
  struct Term {
    Column column;
    double factor;
  };

  /// A variable between two finite bounds.
  Column add_column(double lower, double upper, double cost = 0);
  /// A variable that the rows, or what is asked of the optimum, keep between these bounds anyway:
  /// Clp solves faster without them.
  Column add_free_column(double lower, double upper, double cost = 0);
  /// sum of terms <= upper
  void at_most(std::span<const Term> terms, double upper);
  void at_most(std::initializer_list<Term> terms, double upper) {
    at_most(std::span(terms.begin(), terms.size()), upper);
  }
  /// sum of terms = value
  void equal(std::span<const Term> terms, double value);

  struct Solution {
    bool stopped = false;        ///< time was up, or cancelled: only the bound is set
    double bound = 0;            ///< no solution has less, stopped or not; see Note [Certificate]
    double objective = 0;        ///< what Clp calls the optimum; 0 where it found none
    std::vector<double> values;  ///< per column, in that optimum; empty where it found none
  };
  [[nodiscard]] Solution solve(const SolveOptions& options) const;

 private:
  void add_row(std::span<const Term> terms, double lower, double upper);
  [[nodiscard]] double certified(std::span<const double> prices) const;

  std::vector<double> lower_, upper_, cost_;
  std::vector<bool> free_;
  std::vector<double> row_lower_, row_upper_, row_factors_;
  std::vector<int> row_start_{0}, row_columns_;
};

}  // namespace tidepool
