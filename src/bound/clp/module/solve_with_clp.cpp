#include <coin/Clp_C_Interface.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>

#include "bound/clp/clp_calls.h"

namespace tidepool {
namespace {

using Model = std::unique_ptr<Clp_Simplex, void (*)(Clp_Simplex*)>;

/// Solves in slices, each going on from the basis of the one before. False: stopped.
bool solve_in_slices(Clp_Simplex* model, const ClpProblem& problem) {
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
  const bool presolve = kPresolveSeconds * rows * rows < problem.seconds / 2;
  auto method = presolve ? Method::presolved_dual : Method::dual;
  // Nor can the beginning of a simplex method, which took 2 s for as many.
  constexpr double kBeginSeconds = 2e-6;
  if (problem.seconds < kBeginSeconds * rows) return false;
  while (true) {
    const double left =
        problem.seconds - std::chrono::duration<double>(Clock::now() - start).count();
    if (left <= 0 || problem.enough(problem.whom)) return false;
    Clp_setMaximumSeconds(model, std::min(kSlice, left));
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
}  // namespace tidepool

tidepool::ClpEnd tidepool_solve_with_clp_1(const tidepool::ClpProblem& problem,
                                           tidepool::ClpSolution& solution) {
  using tidepool::ClpEnd;
  const tidepool::Model model(Clp_newModel(), Clp_deleteModel);
  Clp_setLogLevel(model.get(), 0);
  Clp_resize(model.get(), 0, problem.columns);
  std::copy_n(problem.lower, problem.columns, Clp_columnLower(model.get()));
  std::copy_n(problem.upper, problem.columns, Clp_columnUpper(model.get()));
  std::copy_n(problem.cost, problem.columns, Clp_objective(model.get()));
  Clp_addRows(model.get(), problem.rows, problem.row_lower, problem.row_upper, problem.row_start,
              problem.row_columns, problem.row_factors);
  const bool stopped = !tidepool::solve_in_slices(model.get(), problem);
  std::copy_n(Clp_dualRowSolution(model.get()), problem.rows, solution.prices);
  if (stopped) return ClpEnd::stopped;
  constexpr int kOptimal = 0;
  if (Clp_status(model.get()) != kOptimal) return ClpEnd::none;
  std::copy_n(Clp_primalColumnSolution(model.get()), problem.columns, solution.values);
  solution.objective = Clp_objectiveValue(model.get());
  return ClpEnd::optimal;
}
