#include <cassert>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const AddForward& op, const OpDesc& desc, Pointers pointers) {
  assert(desc.operands[0].dims == desc.operands[1].dims);
  const auto a = update<float>(desc, pointers, 0);
  const auto b = read<float>(desc, pointers, 1);
  const auto y = desc.in_place ? a : write<float>(desc, pointers, 2);
  for_each_element(y, [&](auto n, auto c, auto h, auto w) {
    y(n, c, h, w) = a(n, c, h, w) + op.factor * b(n, c, h, w);
  });
}

}  // namespace tidepool::nn::reference
