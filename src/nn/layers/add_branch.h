// The end of a branch that iterations may skip (stochastic depth: Huang et al. 2016, "Deep Networks
// with Stochastic Depth", section 3): a carried value plus what the branch makes of it, or the
// carried value alone. See Note [Branches] in nn/graph.h.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

/// Inputs: the carried value, the branch's. Evaluation adds the branch's times its probability of
/// survival.
struct AddBranch {
  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const AddBranch&, const AddBranch&) = default;
};

}  // namespace tidepool::nn
