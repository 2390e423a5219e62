// GradientFlow: the gradients of values while the backward pass is being written: who still waits
// for which tensor, and how the contributions of several consumers become one gradient.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/lowering.h"

namespace tidepool::nn {

// Note [Shared gradients]. The gradient of an addition is the gradient of both its inputs, so both
// wait for one tensor. A tensor that a value waits for is read later: by the op that adds the
// next contribution, or by the backward ops of the layer that made the value. It may be overwritten
// only by the last of its readers. `held` is the gradient of the layer whose ops are being written;
// it counts as read until the next layer begins.
//
// Note [Gradients of branches]. What a branch that may be skipped contributes to the gradient of a
// value outside of it is only there where the branch ran (Note [Branches] in nn/graph.h): a guarded
// op adds it to what others have contributed, and until they have it waits. The bytes it is in are
// not overwritten by the sum, whatever else reads them: they may be those of a gradient that the
// branch overwrote, or did not.
class GradientFlow {
 public:
  /// `lowering` must outlive the flow.
  explicit GradientFlow(Lowering& lowering)
      : lowering_(lowering),
        waiting_(lowering.graph.values.size()),
        of_branches_(lowering.graph.values.size()),
        contributions_(lowering.graph.values.size(), 0) {}

  /// The whole gradient of a value, none where nothing reaches it. The layer that made the value
  /// holds it from now on; it ends the hold of the layer before.
  std::optional<Operand> take(ValueId value);
  /// Whether the op being written may overwrite the gradient its layer holds.
  [[nodiscard]] bool held_is_free() const { return waiting_for(held_) == 0; }
  /// Adds one consumer's part to the gradient of a value: the first is kept as it is, others are
  /// added by an op of their own, in their order, which belongs to the layer that made the value.
  /// The part is not overwritten afterwards unless nobody else reads it.
  void contribute(ValueId value, Operand part);

 private:
  struct OfBranch {
    Operand part;
    std::int32_t guard = kNone;
  };

  [[nodiscard]] int waiting_for(TensorId tensor) const;
  [[nodiscard]] Operand sum(ValueId value, const Operand& first, const Operand& second);
  /// `total`, or a copy of it where others read it, with the part added where its branch runs.
  [[nodiscard]] Operand sum_of_branch(ValueId value, const Operand& total, const OfBranch& branch);
  [[nodiscard]] std::string sum_name(ValueId value) const;
  /// The value itself waits for it, and nobody else does.
  [[nodiscard]] bool first_is_free(const Operand& first) const {
    return first.tensor != held_ && waiting_for(first.tensor) == 1;
  }

  Lowering& lowering_;
  std::vector<std::optional<Operand>> waiting_;     ///< of each value: the sum so far
  std::vector<std::vector<OfBranch>> of_branches_;  ///< of each value: not in the sum yet
  std::vector<int> contributions_;                  ///< of each value so far
  TensorId held_ = kNone;
};

}  // namespace tidepool::nn
