#include "nn/ops/tensor_desc.h"

#include <algorithm>
#include <bit>

namespace tidepool::nn {
namespace {

constexpr std::array kBlocksOf16 = {Layout::nChw16c, Layout::OIhw16i16o, Layout::OIhw16o16i,
                                    Layout::Ohwi16o};
constexpr std::array kBlocksOf8 = {Layout::nChw8c, Layout::OIhw8i8o, Layout::OIhw8o8i,
                                   Layout::Ohwi8o};

std::size_t index_of(Layout layout, const std::array<Layout, 4>& among) {
  return static_cast<std::size_t>(std::find(among.begin(), among.end(), layout) - among.begin());
}

/// The dims with trailing ones up to four.
std::array<std::int64_t, 4> four_dims(const TensorDesc& desc) {
  assert(desc.dims.size() <= 4);
  std::array<std::int64_t, 4> dims{1, 1, 1, 1};
  for (std::size_t i = 0; i < desc.dims.size(); ++i) dims[i] = desc.dims[i];
  return dims;
}

}  // namespace

std::int64_t block_of(Layout layout) {
  if (layout == Layout::plain) return 1;
  return index_of(layout, kBlocksOf16) < kBlocksOf16.size() ? 16 : 8;
}

Layout in_blocks(Layout layout, std::int64_t block) {
  assert(block == 1 || block == 8 || block == 16);
  if (layout == Layout::plain || block == 1) return Layout::plain;
  const auto& now = block_of(layout) == 16 ? kBlocksOf16 : kBlocksOf8;
  return (block == 16 ? kBlocksOf16 : kBlocksOf8)[index_of(layout, now)];
}

Bytes element_bytes(ElementType type) { return type == ElementType::u8 ? 1 : 4; }

std::int64_t TensorDesc::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

Bytes TensorDesc::bytes() const {
  if (layout == Layout::plain) return elements() * element_bytes(type);
  auto padded = four_dims(*this);
  const std::int64_t block = block_of(layout);
  const Layout order = in_blocks(layout, 16);
  if (order != Layout::nChw16c) padded[0] = align_up(padded[0], block);
  if (order != Layout::Ohwi16o) padded[1] = align_up(padded[1], block);
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
  const auto block = static_cast<std::uint64_t>(block_of(desc.layout));
  shift_ = static_cast<std::uint32_t>(std::countr_zero(block));
  const std::uint64_t b_blocks = (b + block - 1) / block;
  const std::uint64_t square = block * block;
  const Layout order = in_blocks(desc.layout, 16);
  switch (order) {
    case Layout::plain:
      go_by(0, b * image);
      go_by(1, image);
      go_by(2, d);
      go_by(3, 1);
      break;
    case Layout::nChw16c:
      go_by(0, b_blocks * image * block);
      go_by_blocks(1, 1, image * block);
      go_by(2, d * block);
      go_by(3, block);
      break;
    case Layout::OIhw16i16o:
    case Layout::OIhw16o16i: {
      const bool o_within = order == Layout::OIhw16i16o;
      go_by_blocks(0, o_within ? 1 : block, b_blocks * image * square);
      go_by_blocks(1, o_within ? block : 1, image * square);
      go_by(2, d * square);
      go_by(3, square);
      break;
    }
    case Layout::Ohwi16o:
      go_by_blocks(0, 1, image * b * block);
      go_by(1, block);
      go_by(2, d * b * block);
      go_by(3, b * block);
      break;
    default:
      assert(false && "blocks of 8 have the orders of 16");
  }
}

void ElementOffsets::go_by(std::size_t dimension, std::uint64_t within) {
  go_by_blocks(dimension, within, within << shift_);
}

void ElementOffsets::go_by_blocks(std::size_t dimension, std::uint64_t within,
                                  std::uint64_t block) {
  dimensions_[dimension].within = within;
  dimensions_[dimension].block = block;
}

}  // namespace tidepool::nn
