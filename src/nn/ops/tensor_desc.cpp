#include "nn/ops/tensor_desc.h"

#include <array>
#include <cassert>

namespace tidepool::nn {
namespace {

constexpr std::int64_t kBlock = 16;

constexpr std::int64_t round_up(std::int64_t value) { return align_up(value, kBlock); }

/// The dims with trailing ones up to four.
std::array<std::int64_t, 4> four_dims(const TensorDesc& desc) {
  assert(desc.dims.size() <= 4);
  std::array<std::int64_t, 4> dims{1, 1, 1, 1};
  for (std::size_t i = 0; i < desc.dims.size(); ++i) dims[i] = desc.dims[i];
  return dims;
}

}  // namespace

Bytes element_bytes(ElementType type) { return type == ElementType::u8 ? 1 : 4; }

std::int64_t TensorDesc::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

Bytes TensorDesc::bytes() const {
  if (layout == Layout::plain) return elements() * element_bytes(type);
  auto padded = four_dims(*this);
  if (layout != Layout::nChw16c) padded[0] = round_up(padded[0]);
  if (layout != Layout::Ohwi16o) padded[1] = round_up(padded[1]);
  return padded[0] * padded[1] * padded[2] * padded[3] * element_bytes(type);
}

std::int64_t TensorDesc::offset(std::int64_t a, std::int64_t b, std::int64_t c,
                                std::int64_t d) const {
  const auto [A, B, C, D] = four_dims(*this);
  assert(a >= 0 && a < A && b >= 0 && b < B && c >= 0 && c < C && d >= 0 && d < D);
  const std::int64_t a_block = a / kBlock, a_in = a % kBlock;
  const std::int64_t b_block = b / kBlock, b_in = b % kBlock;
  const std::int64_t b_blocks = round_up(B) / kBlock;
  switch (layout) {
    case Layout::plain:
      return ((a * B + b) * C + c) * D + d;
    case Layout::nChw16c:
      return (((a * b_blocks + b_block) * C + c) * D + d) * kBlock + b_in;
    case Layout::OIhw16i16o:
      return ((((a_block * b_blocks + b_block) * C + c) * D + d) * kBlock + b_in) * kBlock + a_in;
    case Layout::OIhw16o16i:
      return ((((a_block * b_blocks + b_block) * C + c) * D + d) * kBlock + a_in) * kBlock + b_in;
    case Layout::Ohwi16o:
      return (((a_block * C + c) * D + d) * B + b) * kBlock + a_in;
  }
  assert(false);
  return 0;
}

}  // namespace tidepool::nn
