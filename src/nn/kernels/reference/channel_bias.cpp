#include <vector>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const ChannelBiasForward& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto y = update<float>(desc, pointers, 0);
  const auto bias = read<float>(desc, pointers, 1);
  for_each_element(y, [&](auto n, auto c, auto h, auto w) { y(n, c, h, w) += bias(c); });
}

void run(const ChannelBiasBackward& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto dy = read<float>(desc, pointers, 0);
  const auto dbias = write<float>(desc, pointers, 1);
  std::vector<double> sums(static_cast<std::size_t>(dy.dim(1)));
  for_each_element(dy, [&](auto n, auto c, auto h, auto w) {
    sums[static_cast<std::size_t>(c)] += static_cast<double>(dy(n, c, h, w));
  });
  for (std::int64_t c = 0; c < dy.dim(1); ++c) {
    dbias(c) = static_cast<float>(sums[static_cast<std::size_t>(c)]);
  }
}

}  // namespace tidepool::nn::reference
