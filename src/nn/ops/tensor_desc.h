// TensorDesc: shape, element type and physical layout of a tensor, as kernels see it.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace tidepool::nn {

enum class ElementType : std::uint8_t { f32, u8, i32 };

Bytes element_bytes(ElementType type);

/// Physical order of elements. Channels of a blocked layout are padded with zeros to a multiple
/// of the block; the padding is part of the tensor's bytes.
enum class Layout : std::uint8_t {
  plain,       ///< row-major in the order of dims: NCHW, OIHW, NC, C
  nChw16c,     ///< activations, blocked by 16 channels
  OIhw16i16o,  ///< convolution weights as forward and backward-weights use them
  OIhw16o16i,  ///< convolution weights as backward-data uses them
  Ohwi16o,     ///< weights of a first convolution with few input channels
  nChw8c,      ///< the same four in blocks of 8
  OIhw8i8o,
  OIhw8o8i,
  Ohwi8o,
};

/// Channels of a block: 1, 8 or 16. A plain layout has blocks of one.
std::int64_t block_of(Layout layout);

/// The layout's order in blocks of 8 or 16 channels; `plain` in blocks of one, and `plain` stays.
Layout in_blocks(Layout layout, std::int64_t block);

struct TensorDesc {
  std::vector<std::int64_t> dims;
  ElementType type = ElementType::f32;
  Layout layout = Layout::plain;

  [[nodiscard]] Bytes bytes() const;            ///< including padding
  [[nodiscard]] std::int64_t elements() const;  ///< without padding
  /// Index of a logical element in units of elements; for 4-d layouts.
  [[nodiscard]] std::int64_t offset(std::int64_t a, std::int64_t b, std::int64_t c,
                                    std::int64_t d) const;
  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

/// Where the elements of a tensor are, for whoever asks for many of them: in every layout an offset
/// is a sum with one part for each dimension, of which one goes in blocks.
class ElementOffsets {
 public:
  explicit ElementOffsets(const TensorDesc& desc);

  /// As TensorDesc::offset.
  [[nodiscard]] std::int64_t operator()(std::int64_t a, std::int64_t b, std::int64_t c,
                                        std::int64_t d) const {
    return part(0, a) + part(1, b) + part(2, c) + part(3, d);
  }

 private:
  struct Dimension {
    std::uint64_t size = 1;
    std::uint64_t block = 0;   ///< from one block to the next
    std::uint64_t within = 0;  ///< from one index of a block to the next
  };
  [[nodiscard]] std::int64_t part(std::size_t dimension, std::int64_t index) const {
    const Dimension& of = dimensions_[dimension];
    const auto i = static_cast<std::uint64_t>(index);
    assert(i < of.size);
    return static_cast<std::int64_t>((i >> shift_) * of.block +
                                     (i & ((1U << shift_) - 1)) * of.within);
  }
  void go_by(std::size_t dimension, std::uint64_t within);
  void go_by_blocks(std::size_t dimension, std::uint64_t within, std::uint64_t block);

  std::uint32_t shift_ = 0;  ///< a block is 2 to the power of this
  std::array<Dimension, 4> dimensions_;
};

}  // namespace tidepool::nn
