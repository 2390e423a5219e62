#include <cassert>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const Reorder& /*op*/, const OpDesc& desc, Pointers pointers) {
  assert(desc.operands[0].dims == desc.operands[1].dims);
  const auto from = read<float>(desc, pointers, 0);
  const auto to = write<float>(desc, pointers, 1);
  for_each_element(to, [&](auto a, auto b, auto c, auto d) { to(a, b, c, d) = from(a, b, c, d); });
}

}  // namespace tidepool::nn::reference
