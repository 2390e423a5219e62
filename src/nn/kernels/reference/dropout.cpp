#include <cassert>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {
namespace {

/// Whether an element of the tensor `x` is kept.
class KeepRule {
 public:
  KeepRule(const DropoutAttributes& op, std::int64_t first_sample, const TensorView<float>& x,
           const ControlBlock& control)
      : key_(dropout_key(control.seed, op.random_key, control.iteration)),
        threshold_(dropout_threshold(op.rate)),
        first_sample_(first_sample),
        x_(x) {}

  bool operator()(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    const std::int64_t element =
        (((first_sample_ + n) * x_.dim(1) + c) * x_.dim(2) + h) * x_.dim(3) + w;
    return dropout_bits(key_, static_cast<std::uint32_t>(element)) >= threshold_;
  }

 private:
  std::uint64_t key_;
  std::uint32_t threshold_;
  std::int64_t first_sample_;
  const TensorView<float>& x_;
};

const ControlBlock& control_of(Pointers pointers) {
  return *reinterpret_cast<const ControlBlock*>(pointers[1]);
}

/// Forward and backward in place are the same: both zero what is not kept and scale the rest.
void drop_in_place(const DropoutAttributes& op, const OpDesc& desc, Pointers pointers) {
  const auto x = update<float>(desc, pointers, 0);
  const KeepRule keep(op, desc.first_sample, x, control_of(pointers));
  for_each_element(x, [&](auto n, auto c, auto h, auto w) {
    x(n, c, h, w) = keep(n, c, h, w) ? x(n, c, h, w) * op.scale() : 0.0F;
  });
}

}  // namespace

void run(const DropoutForward& op, const OpDesc& desc, Pointers pointers) {
  if (desc.in_place) return drop_in_place(op, desc, pointers);
  assert(desc.operands[3].type == ElementType::u8);
  const auto x = update<float>(desc, pointers, 0);
  const auto y = write<float>(desc, pointers, 2);
  const auto mask = write<std::uint8_t>(desc, pointers, 3);
  const KeepRule keep(op, desc.first_sample, x, control_of(pointers));
  for_each_element(x, [&](auto n, auto c, auto h, auto w) {
    if (!keep(n, c, h, w)) return;
    y(n, c, h, w) = x(n, c, h, w) * op.scale();
    mask(n, c, h, w) = 1;
  });
}

void run(const DropoutBackward& op, const OpDesc& desc, Pointers pointers) {
  if (desc.in_place) return drop_in_place(op, desc, pointers);
  assert(desc.operands[1].type == ElementType::u8);
  const auto dy = read<float>(desc, pointers, 0);
  const auto mask = read<std::uint8_t>(desc, pointers, 1);
  const auto dx = write<float>(desc, pointers, 2);
  for_each_element(dy, [&](auto n, auto c, auto h, auto w) {
    if (mask(n, c, h, w) != 0) dx(n, c, h, w) = dy(n, c, h, w) * op.scale();
  });
}

}  // namespace tidepool::nn::reference
