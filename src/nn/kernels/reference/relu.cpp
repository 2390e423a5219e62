#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const ReluForward& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto x = update<float>(desc, pointers, 0);
  const auto y = desc.in_place ? x : write<float>(desc, pointers, 1);
  for_each_element(y, [&](auto n, auto c, auto h, auto w) {
    y(n, c, h, w) = x(n, c, h, w) > 0 ? x(n, c, h, w) : 0.0F;
  });
}

void run(const ReluBackward& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto y = read<float>(desc, pointers, 0);
  const auto dy = update<float>(desc, pointers, 1);
  const auto dx = desc.in_place ? dy : write<float>(desc, pointers, 2);
  for_each_element(dx, [&](auto n, auto c, auto h, auto w) {
    dx(n, c, h, w) = y(n, c, h, w) > 0 ? dy(n, c, h, w) : 0.0F;
  });
}

}  // namespace tidepool::nn::reference
