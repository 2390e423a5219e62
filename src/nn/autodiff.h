// The backward pass by reverse differentiation of the graph, with the weight updates.
#pragma once

#include "base/result.h"
#include "nn/lowering.h"

namespace tidepool::nn {

/// Appends the backward ops of every layer the loss depends on, last layer first, and each weight's
/// update right after the last op that needs the old weight. Fails where a layer's gradient is not
/// supported.
Result<void> emit_backward(Lowering& lowering);

}  // namespace tidepool::nn
