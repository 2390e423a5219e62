// TensorParts: a timing problem that is kept from one strategy to the next and changed where the
// strategies differ. Where nothing is recomputed and there are no hints a tensor's lives and copies
// follow from its own decisions alone, so only tensors with a changed decision are expanded anew.
#pragma once

#include <vector>

#include "lower/timing_problem.h"

namespace tidepool {

class TensorParts {
 public:
  /// All must outlive this.
  TensorParts(const Program& program, const AccessIndex& index, Expander& expander,
              const TimingProblems& problems);

  /// The problem of `strategy`, until the next call. Null where it has to be made by
  /// `Expander::expand` and `TimingProblems::make`, which say why if it cannot be made at all.
  const TimingProblem* problem_of(const Strategy& strategy);

  [[nodiscard]] const TimingProblem& problem() const { return problem_; }
  /// What it was made of: decisions and algorithms.
  [[nodiscard]] const Strategy& strategy() const { return strategy_; }

  /// The next problem is made from scratch.
  void forget() { known_ = false; }

 private:
  /// A tensor's part; calls are ops.
  struct Part {
    std::vector<Move> moves;
    std::vector<Life> lives;
    std::vector<LifeId> operands;  ///< at its accesses
    std::vector<std::int32_t> position;
    [[nodiscard]] TimingPart view() const { return {moves, lives, position}; }
  };
  /// A copy in the order of issue.
  struct Copy {
    std::int32_t operand =
        0;  ///< of all operands of the program: of the access before or behind it
    TensorId tensor = kNone;
    MoveId move = kNone;
    friend bool operator<(const Copy& a, const Copy& b) { return a.operand < b.operand; }
  };

  [[nodiscard]] bool find_changed(const Strategy& strategy);
  void take_algorithms(const Strategy& strategy);
  bool change(const Strategy& strategy, TensorId tensor);
  enum class Listing : std::uint8_t { insert, remove, append };
  void list(TensorId tensor, Listing how);
  void list_all();
  void number_copies();
  Part& part(TensorId t) { return parts_[static_cast<std::size_t>(t)]; }
  [[nodiscard]] std::int32_t operand_of(const Move& move) const;

  const Program& program_;
  const AccessIndex& index_;
  Expander& expander_;
  const TimingProblems& problems_;
  std::vector<std::int32_t> operand_start_;  ///< per op
  std::vector<TensorId> host_tensors_;       ///< with accesses on the host

  bool known_ = false;  ///< the rest is of strategy_
  Strategy strategy_;   ///< decisions and algorithms
  std::vector<Part> parts_;
  std::vector<Copy> outs_;   ///< in the order of issue
  std::vector<Copy> ins_;    ///< in the order of their calls
  std::vector<Bytes> load_;  ///< differences, without workspaces
  TimingProblem problem_;

  std::vector<TensorId> changed_;
  std::vector<CallId> needing_;        ///< calls with a needs_out
  std::vector<std::int32_t> last_in_;  ///< per tensor
  Expansion x_;
};

}  // namespace tidepool
