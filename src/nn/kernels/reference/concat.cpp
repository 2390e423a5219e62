#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const ConcatForward& op, const OpDesc& desc, Pointers pointers) {
  const auto inputs = static_cast<std::size_t>(op.inputs);
  const auto y = write<float>(desc, pointers, inputs);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < inputs; ++i) {
    const auto x = read<float>(desc, pointers, i);
    for_each_element(
        x, [&](auto n, auto c, auto h, auto w) { y(n, first + c, h, w) = x(n, c, h, w); });
    first += x.dim(1);
  }
}

void run(const ConcatBackward& op, const OpDesc& desc, Pointers pointers) {
  const auto dy = read<float>(desc, pointers, 0);
  const auto dx = write<float>(desc, pointers, 1);
  for_each_element(dx, [&](auto n, auto c, auto h, auto w) {
    dx(n, c, h, w) = dy(n, op.first_channel + c, h, w);
  });
}

}  // namespace tidepool::nn::reference
