#include "nn/optimizers.h"

#include <cassert>

namespace tidepool::nn {

AnyOp update_op(const TrainingOptions& options) {
  switch (options.optimizer) {
    case Optimizer::sgd:
      return SgdUpdate{options.momentum, options.weight_decay};
    case Optimizer::adamw:
      return AdamwUpdate{options.beta1, options.beta2, options.epsilon, options.weight_decay};
  }
  assert(false);
  return {};
}

AnyOp host_update_op(const TrainingOptions& options) {
  const std::int64_t others = options.devices - 1;
  switch (options.optimizer) {
    case Optimizer::sgd:
      return HostSgdUpdate{{options.momentum, options.weight_decay}, others};
    case Optimizer::adamw:
      return HostAdamwUpdate{{options.beta1, options.beta2, options.epsilon, options.weight_decay},
                             others};
  }
  assert(false);
  return {};
}

std::vector<OperandRule> optimizer_state(const TrainingOptions& options) {
  constexpr std::ptrdiff_t kFirst = 3;
  const std::vector<OperandRule> rules = OpDesc{update_op(options)}.rules();
  return {rules.begin() + kFirst, rules.end()};
}

}  // namespace tidepool::nn
