#include <cassert>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const SgdUpdate& op, const OpDesc& desc, Pointers pointers) {
  assert(desc.operands[0] == desc.operands[2] && desc.operands[2] == desc.operands[3]);
  const auto gradient = read<float>(desc, pointers, 0);
  const auto& control = *reinterpret_cast<const ControlBlock*>(pointers[1]);
  const auto weight = update<float>(desc, pointers, 2);
  const auto momentum = update<float>(desc, pointers, 3);
  for_each_element(weight, [&](auto a, auto b, auto c, auto d) {
    const float decayed = gradient(a, b, c, d) + op.weight_decay * weight(a, b, c, d);
    momentum(a, b, c, d) = op.momentum * momentum(a, b, c, d) + decayed;
    weight(a, b, c, d) -= control.learning_rate * momentum(a, b, c, d);
  });
}

}  // namespace tidepool::nn::reference
