// What linear_program asks of the module that links Clp: headers of Clp are included there
// (module/) and nowhere else.
#pragma once

namespace tidepool {

/// minimise cost x, with lower <= x <= upper and row_lower <= A x <= row_upper. The rows of A are
/// in row_columns and row_factors, from row_start[i] to row_start[i + 1].
struct ClpProblem {
  int rows = 0;
  int columns = 0;
  const double* lower = nullptr;
  const double* upper = nullptr;
  const double* cost = nullptr;
  const double* row_lower = nullptr;
  const double* row_upper = nullptr;
  const int* row_start = nullptr;
  const int* row_columns = nullptr;
  const double* row_factors = nullptr;

  double seconds = 0;                     ///< for all of it
  bool (*enough)(const void*) = nullptr;  ///< asked at every iteration of Clp
  const void* whom = nullptr;             ///< its argument
};

enum class ClpEnd : unsigned char { stopped, optimal, none };

struct ClpSolution {
  double* prices = nullptr;  ///< of the rows; written whatever the end
  double* values = nullptr;  ///< of the columns; written where it is optimal
  double objective = 0;
};

/// The module's one function. Its name changes with this header, so that a module of another
/// version is refused. It keeps nothing between calls, and any number of threads may call it.
using SolveWithClp = ClpEnd (*)(const ClpProblem&, ClpSolution&);
inline constexpr const char* kSolveWithClp = "tidepool_solve_with_clp_1";

/// Null where there is no module: `clp_missing` says why.
SolveWithClp find_clp();
const char* clp_missing();

}  // namespace tidepool

/// As it is called where Clp is linked.
extern "C" __attribute__((visibility("default"))) tidepool::ClpEnd tidepool_solve_with_clp_1(
    const tidepool::ClpProblem& problem, tidepool::ClpSolution& solution);
