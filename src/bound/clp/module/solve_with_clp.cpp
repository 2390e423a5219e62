#include <algorithm>
#include <chrono>
#include <coin/ClpEventHandler.hpp>
#include <coin/ClpSimplex.hpp>
#include <coin/ClpSolve.hpp>
#include <cstdint>

#include "bound/clp/clp_calls.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a solve may go on. Clp's own limit counts the process's other threads as well.
class Patience {
 public:
  explicit Patience(const ClpProblem& problem) : problem_(problem) {}

  [[nodiscard]] double seconds_left() const {
    return problem_.seconds - std::chrono::duration<double>(Clock::now() - begun_).count();
  }
  /// Once it is over it stays so: what Clp begins after it was stopped, to tidy up, ends at once.
  bool over() {
    over_ = over_ || seconds_left() <= 0 || problem_.enough(problem_.whom);
    return over_;
  }

 private:
  const ClpProblem& problem_;
  Clock::time_point begun_ = Clock::now();
  bool over_ = false;
};

/// Asked by Clp at every iteration and every factorization. Models that Clp makes of this one
/// (presolved, scaled) have clones of it.
class EndsInTime : public ClpEventHandler {
 public:
  explicit EndsInTime(Patience& patience) : patience_(&patience) {}

  int event(Event /*which*/) override {
    constexpr int kGoOn = -1;
    constexpr int kStop = 0;
    return patience_->over() ? kStop : kGoOn;
  }
  [[nodiscard]] ClpEventHandler* clone() const override { return new EndsInTime(*this); }

 private:
  Patience* patience_;
};

/// False: stopped.
bool solve(ClpSimplex& model, Patience& patience) {
  // Clp's own Ctrl-C handler would replace the program's while it solves: the signal would be lost.
  ClpSolve presolved;
  presolved.setSolveType(ClpSolve::useDual);
  constexpr int kInterrupts = 2;
  presolved.setSpecialOption(kInterrupts, 1);
  constexpr int kOptimal = 0;
  // Presolve cannot be stopped. It took 60 s for 1.7 million rows, and is taken to grow with their
  // square.
  constexpr double kPresolveSeconds = 2e-11;
  const double rows = model.numberRows();
  const bool presolve = kPresolveSeconds * rows * rows < patience.seconds_left() / 2;
  // Nor can the beginning of a simplex method, which took 2 s for as many.
  constexpr double kBeginSeconds = 2e-6;
  if (patience.seconds_left() < kBeginSeconds * rows) return false;
  // Presolve, and a dual simplex that goes on from an interrupted one, may call a feasible program
  // infeasible; the primal one then decides.
  enum class Method : std::uint8_t { presolved_dual, dual, primal };
  for (auto method = presolve ? Method::presolved_dual : Method::dual; !patience.over();
       method = Method::primal) {
    if (method == Method::presolved_dual) {
      model.initialSolve(presolved);
    } else if (method == Method::dual) {
      model.dual(0);
    } else {
      model.primal(0);
    }
    if (patience.over()) return false;
    if (model.status() == kOptimal || method == Method::primal) return true;
  }
  return false;
}

/// The optimum again, within less. What is left of perturbed costs, of presolve and of the usual
/// tolerance of 1e-7 cost a certificate up to 5 % of its bound. Takes hardly an iteration. False:
/// what was found before is to be used.
bool polish(ClpSimplex& model, Patience& patience) {
  constexpr int kNoPerturbation = 100;
  constexpr double kTolerance = 1e-9;
  constexpr int kOptimal = 0;
  model.setPerturbation(kNoPerturbation);
  model.setDualTolerance(kTolerance);
  model.setPrimalTolerance(kTolerance);
  model.primal(0);
  return !patience.over() && model.status() == kOptimal;
}

void copy_solution(const ClpSimplex& model, ClpSolution& solution) {
  std::copy_n(model.dualRowSolution(), model.numberRows(), solution.prices);
  std::copy_n(model.primalColumnSolution(), model.numberColumns(), solution.values);
  solution.objective = model.objectiveValue();
}

}  // namespace
}  // namespace tidepool

tidepool::ClpEnd tidepool_solve_with_clp_1(const tidepool::ClpProblem& problem,
                                           tidepool::ClpSolution& solution) {
  using tidepool::ClpEnd;
  tidepool::Patience patience(problem);
  const tidepool::EndsInTime ends_in_time(patience);
  ClpSimplex model;
  model.setLogLevel(0);
  model.passInEventHandler(&ends_in_time);
  model.resize(0, problem.columns);
  std::copy_n(problem.lower, problem.columns, model.columnLower());
  std::copy_n(problem.upper, problem.columns, model.columnUpper());
  std::copy_n(problem.cost, problem.columns, model.objective());
  model.addRows(problem.rows, problem.row_lower, problem.row_upper, problem.row_start,
                problem.row_columns, problem.row_factors);
  const bool stopped = !tidepool::solve(model, patience);
  tidepool::copy_solution(model, solution);
  if (stopped) return ClpEnd::stopped;
  constexpr int kOptimal = 0;
  if (model.status() != kOptimal) return ClpEnd::none;
  if (tidepool::polish(model, patience)) tidepool::copy_solution(model, solution);
  return ClpEnd::optimal;
}
