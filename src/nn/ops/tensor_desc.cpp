#include "nn/ops/tensor_desc.h"

namespace tidepool::nn {
namespace {

constexpr std::int64_t round_up(std::int64_t value) {
  return align_up(value, static_cast<std::int64_t>(ElementOffsets::kBlock));
}

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
  return ElementOffsets(*this)(a, b, c, d);
}

ElementOffsets::ElementOffsets(const TensorDesc& desc) {
  const auto dims = four_dims(desc);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    dimensions_[i].size = static_cast<std::uint64_t>(dims[i]);
  }
  const std::uint64_t b = dimensions_[1].size;
  const std::uint64_t d = dimensions_[3].size;
  const std::uint64_t image = dimensions_[2].size * d;
  const std::uint64_t b_blocks = static_cast<std::uint64_t>(round_up(dims[1])) / kBlock;
  constexpr std::uint64_t kSquare = kBlock * kBlock;
  switch (desc.layout) {
    case Layout::plain:
      go_by(0, b * image);
      go_by(1, image);
      go_by(2, d);
      go_by(3, 1);
      break;
    case Layout::nChw16c:
      go_by(0, b_blocks * image * kBlock);
      go_by_blocks(1, 1, image * kBlock);
      go_by(2, d * kBlock);
      go_by(3, kBlock);
      break;
    case Layout::OIhw16i16o:
    case Layout::OIhw16o16i: {
      const bool o_within = desc.layout == Layout::OIhw16i16o;
      go_by_blocks(0, o_within ? 1 : kBlock, b_blocks * image * kSquare);
      go_by_blocks(1, o_within ? kBlock : 1, image * kSquare);
      go_by(2, d * kSquare);
      go_by(3, kSquare);
      break;
    }
    case Layout::Ohwi16o:
      go_by_blocks(0, 1, image * b * kBlock);
      go_by(1, kBlock);
      go_by(2, d * b * kBlock);
      go_by(3, b * kBlock);
      break;
  }
}

void ElementOffsets::go_by(std::size_t dimension, std::uint64_t within) {
  go_by_blocks(dimension, within, within * kBlock);
}

void ElementOffsets::go_by_blocks(std::size_t dimension, std::uint64_t within,
                                  std::uint64_t block) {
  dimensions_[dimension].within = within;
  dimensions_[dimension].block = block;
}

}  // namespace tidepool::nn
