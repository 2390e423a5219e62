// The absences of a program as the fluid relaxation counts them: one by one, or many together.
#pragma once

#include <span>
#include <vector>

#include "bound/absences.h"
#include "bound/fluid.h"
#include "bound/recipes.h"

namespace tidepool {

/// Each part stands for one absence or for several. All lists but `of` have one entry per part.
struct Parts {
  std::vector<Absence> absences;  ///< of several: one of them
  std::vector<double> bytes;
  std::vector<double> aligned;  ///< the same rounded up to the alignment
  std::vector<double> copies;   ///< copies it takes at least to move all of it
  std::vector<Recipe> recipes;  ///< empty: nothing runs again
  /// Nanoseconds of ops that run again to make all of it; empty: that is as the recipes say.
  std::vector<double> again;
  std::vector<std::int32_t> of;  ///< per absence of the program: its part

  [[nodiscard]] std::size_t size() const { return absences.size(); }
  [[nodiscard]] double padding(std::size_t part) const { return aligned[part] - bytes[part]; }
  [[nodiscard]] bool repeats(std::size_t part) const {
    return !recipes.empty() && !recipes[part].ops.empty();
  }
  /// From which op on it may be copied out.
  [[nodiscard]] OpId born(std::size_t part) const {
    return repeats(part) ? recipes[part].born : absences[part].born;
  }
};

/// Each absence is a part.
Parts parts_of(const FluidProblem& problem);

// Note [Merged absences]. Where conditions are asked of some ops only (Note [Some ops] in
// some_ops.h), absences that begin, end and are born between the same two of these ops are told
// apart by nothing but their sizes. So are lives of values, each all the absences of one value, of
// which this is true one by one. Each such class is one part of all their bytes, whose variables
// are the means of theirs, weighed by bytes: every row holds of them, as it is linear and has the
// same factors per byte, or factors that ask for less:
//   - copies: no fewer than bytes / bytes of the largest;
//   - padding: as much per byte as that which has most, so a class has similar ones only;
//   - ops that run again: the time of an op is divided among the values that ask for it, by their
//     bytes (it runs as often as the one that asks for most, so no less than any mean of theirs),
//     and a class takes the least time per byte of all: it has similar ones only.

/// `whole`: as `parts_of` makes them. `asked`: per op, of some. `ratio`: of times per byte in a
/// class, above 1.
Parts merged_parts(const FluidProblem& problem, const Parts& whole, std::span<const char> asked,
                   double ratio);

}  // namespace tidepool
