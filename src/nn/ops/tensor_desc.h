// TensorDesc: shape, element type and physical layout of a tensor, as kernels see it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace tidepool::nn {

enum class ElementType : std::uint8_t { f32, u8, i32 };

Bytes element_bytes(ElementType type);

/// Physical order of elements. Channels of a blocked layout are padded with zeros to a multiple
/// of 16; the padding is part of the tensor's bytes.
enum class Layout : std::uint8_t {
  plain,       ///< row-major in the order of dims: NCHW, OIHW, NC, C
  nChw16c,     ///< activations, blocked by 16 channels
  OIhw16i16o,  ///< convolution weights as forward and backward-weights use them
  OIhw16o16i,  ///< convolution weights as backward-data uses them
  Ohwi16o,     ///< weights of a first convolution with few input channels
};

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

}  // namespace tidepool::nn
