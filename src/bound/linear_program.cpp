#include "bound/linear_program.h"

#include <coin/Clp_C_Interface.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

#include "base/at.h"

namespace tidepool {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::max();

using Model = std::unique_ptr<Clp_Simplex, void (*)(Clp_Simplex*)>;

/// Solves in slices, each going on from the basis of the one before. False: stopped.
bool solve_in_slices(Clp_Simplex* model, const SolveOptions& options) {
  // Clp's own Ctrl-C handler would replace the program's while it solves: the signal would end a
  // slice and be lost.
  const std::unique_ptr<Clp_Solve, void (*)(Clp_Solve*)> presolved(ClpSolve_new(), ClpSolve_delete);
  constexpr int kUseDual = 0;
  constexpr int kInterrupts = 2;
  ClpSolve_setSolveType(presolved.get(), kUseDual, -1);
  ClpSolve_setSpecialOption(presolved.get(), kInterrupts, 1, -1);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  constexpr double kSlice = 0.5;  // seconds
  constexpr int kOptimal = 0;
  constexpr int kStopped = 3;
  // Presolve, and a dual simplex that goes on from an interrupted one, may call a feasible program
  // infeasible; the primal one then decides.
  enum class Method : std::uint8_t { presolved_dual, dual, primal };
  // Presolve cannot be stopped. It took 60 s for 1.7 million rows, and is taken to grow with their
  // square.
  constexpr double kPresolveSeconds = 2e-11;
  const double rows = Clp_numberRows(model);
  const bool presolve = kPresolveSeconds * rows * rows < to_seconds(options.time_limit) / 2;
  auto method = presolve ? Method::presolved_dual : Method::dual;
  // Nor can the beginning of a simplex method, which took 2 s for as many.
  constexpr double kBeginSeconds = 2e-6;
  if (to_seconds(options.time_limit) < kBeginSeconds * rows) return false;
  while (true) {
    const Nanos left = options.time_limit - (Clock::now() - start);
    if (left <= Nanos{0} || options.stop.requested() || options.give_up.requested()) {
      return false;
    }
    Clp_setMaximumSeconds(model, std::min(kSlice, to_seconds(left)));
    if (method == Method::presolved_dual) {
      Clp_initialSolveWithOptions(model, presolved.get());
    } else if (method == Method::dual) {
      Clp_dual(model, 0);
    } else {
      Clp_primal(model, 0);
    }
    const int status = Clp_status(model);
    if (status == kStopped) {
      if (method == Method::presolved_dual) method = Method::dual;
    } else if (status != kOptimal && method != Method::primal) {
      method = Method::primal;
    } else {
      return true;
    }
  }
}

}  // namespace

LinearProgram::Column LinearProgram::add_column(double lower, double upper, double cost) {
  assert(lower <= upper && std::isfinite(lower) && std::isfinite(upper));
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
  const Model model(Clp_newModel(), Clp_deleteModel);
  Clp_setLogLevel(model.get(), 0);
  const auto rows = static_cast<int>(row_lower_.size());
  const auto columns = static_cast<int>(lower_.size());
  Clp_resize(model.get(), 0, columns);
  for (int c = 0; c < columns; ++c) {
    Clp_columnLower(model.get())[c] = free_[at(c)] ? -kInfinity : lower_[at(c)];
    Clp_columnUpper(model.get())[c] = free_[at(c)] ? kInfinity : upper_[at(c)];
    Clp_objective(model.get())[c] = cost_[at(c)];
  }
  Clp_addRows(model.get(), rows, row_lower_.data(), row_upper_.data(), row_start_.data(),
              row_columns_.data(), row_factors_.data());
  Solution solution;
  solution.stopped = !solve_in_slices(model.get(), options);
  const double* prices = Clp_dualRowSolution(model.get());
  solution.bound = certified({prices, prices + rows});
  constexpr int kOptimal = 0;
  if (solution.stopped || Clp_status(model.get()) != kOptimal) return solution;
  const double* values = Clp_primalColumnSolution(model.get());
  solution.values.assign(values, values + columns);
  solution.objective = Clp_objectiveValue(model.get());
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
