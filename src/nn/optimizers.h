// Optimizers: the op that updates a weight. Its operands are the gradient, the control block, the
// weight, and the optimizer's state.
#pragma once

#include <span>

#include "nn/ops/op_desc.h"
#include "nn/training_program.h"

namespace tidepool::nn {

/// With the attributes that the options ask for.
AnyOp update_op(const TrainingOptions& options);
/// The same on the host, from the gradients of so many devices.
AnyOp host_update_op(const TrainingOptions& options);
/// The tensors an optimizer keeps for each weight, as operands of its update op.
std::vector<OperandRule> optimizer_state(const TrainingOptions& options);

}  // namespace tidepool::nn
