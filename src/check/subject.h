// What the clauses of check share: the plan that is judged, and how to name what is wrong with it.
#pragma once

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/at.h"
#include "check/check.h"

namespace tidepool::checking {

/// A counterexample; caught in `check`.
struct Refuted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void refute(int clause, fmt::format_string<Args...> text, Args&&... args) {
  throw Refuted(fmt::format("({}) {}", clause, fmt::format(text, std::forward<Args>(args)...)));
}

template <class T>
bool valid_index(std::int32_t index, const std::vector<T>& list) {
  return index >= 0 && at(index) < list.size();
}

/// Bytes an instruction touches. `tensor` is kNone for a workspace.
struct Touch {
  SpaceId space = 0;
  Bytes begin = 0;
  Bytes end = 0;
  bool reads = false;
  bool writes = false;
  TensorId tensor = kNone;
};

/// A program and a plan for it. Both must outlive this.
class Subject {
 public:
  Subject(const Program& program, const Plan& plan);

  const Program& program;
  const Plan& plan;

  [[nodiscard]] std::string tensor_name(TensorId t) const;
  [[nodiscard]] std::string space_name(SpaceId space) const;
  /// Instruction `i` of `schedule`, which is the `part` ("entry", "steady", "exit") of the plan.
  [[nodiscard]] std::string describe(std::string_view part, const Schedule& schedule,
                                     std::size_t i) const;

  // What an instruction touches; only of plans whose shape is right.
  [[nodiscard]] Touch touch(PlacementId id, bool reads, bool writes) const;
  /// The same of a copy's end. With a file at either end copies are of whole blocks, which are as
  /// long as the file's alignment, and more than the placement's bytes may be touched.
  [[nodiscard]] Touch copied(const Instruction& x, PlacementId id, bool writes) const;
  /// 1 where no file is at either end.
  [[nodiscard]] Bytes block_of(const Instruction& copy) const;
  [[nodiscard]] Touch workspace(const Instruction& x) const;
  [[nodiscard]] std::vector<Touch> touches(const Instruction& x) const;
  /// Where tensors lie that this instruction of the steady state releases (Tensor::released_at): at
  /// their last access. Its op does not read them, and the values must be there all the same.
  [[nodiscard]] std::span<const PlacementId> released_by(const Instruction& x) const;
  /// Finds `released_by`, once the shape is right.
  void find_released();

 private:
  std::vector<std::vector<PlacementId>> released_;  ///< per op
  std::vector<const Instruction*> first_run_;       ///< per op; later ones are recomputations
};

}  // namespace tidepool::checking
