#include <cassert>
#include <cmath>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const AdamwUpdate& op, const OpDesc& desc, Pointers pointers) {
  assert(desc.operands[0] == desc.operands[2] && desc.operands[2] == desc.operands[3] &&
         desc.operands[3] == desc.operands[4]);
  const auto gradient = read<float>(desc, pointers, 0);
  const auto& control = *reinterpret_cast<const ControlBlock*>(pointers[1]);
  const auto weight = update<float>(desc, pointers, 2);
  const auto first = update<float>(desc, pointers, 3);
  const auto second = update<float>(desc, pointers, 4);
  const AdamwFactors factors = adamw_factors(op, control);
  for_each_element(weight, [&](auto a, auto b, auto c, auto d) {
    const float g = gradient(a, b, c, d);
    float& m = first(a, b, c, d);
    float& v = second(a, b, c, d);
    m = op.beta1 * m + (1 - op.beta1) * g;
    v = op.beta2 * v + (1 - op.beta2) * (g * g);
    weight(a, b, c, d) = factors.keep * weight(a, b, c, d) -
                         factors.step * m / (std::sqrt(v) * factors.root + op.epsilon);
  });
}

}  // namespace tidepool::nn::reference
