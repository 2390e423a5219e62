// The backward pass by reverse differentiation of the graph, with the weight updates.
#pragma once

#include "nn/lowering.h"

namespace tidepool::nn {

/// Appends the backward ops of every layer the loss depends on, last layer first, and each weight's
/// update right after the last op that needs the old weight. The gradients of a value's consumers
/// are added (see gradient_flow.h).
void emit_backward(Lowering& lowering);

}  // namespace tidepool::nn
