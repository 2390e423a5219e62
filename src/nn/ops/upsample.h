// Upsampling: images that are a whole number of times as large in both directions.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct UpsampleAttributes {
  std::int64_t factor = 2;
  /// Between the pixels around: they lie at half-integers, and the border goes on as it is
  /// (PyTorch's align_corners = false). Otherwise each pixel becomes a square of its value.
  bool bilinear = false;
};

struct UpsampleForward : UpsampleAttributes {
  static constexpr const char* name = "upsample_forward";
  static constexpr auto operands = std::array{reads("x"), writes("y")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return (bilinear ? 8 : 1) * count(o[1]); }
};

struct UpsampleBackward : UpsampleAttributes {
  static constexpr const char* name = "upsample_backward";
  static constexpr auto operands = std::array{reads("dy"), writes("dx")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return (bilinear ? 8 : 1) * count(o[0]); }
};

/// What one place of the larger row or column is made of: two neighbours, which may be the same.
struct UpsampleSource {
  std::int64_t first = 0, second = 0;
  float of_second = 0;  ///< weight; that of `first` is the rest

  /// Weight of place `at` in the sum.
  [[nodiscard]] constexpr float weight_of(std::int64_t at) const {
    return (at == first ? 1 - of_second : 0) + (at == second ? of_second : 0);
  }
};

/// Of place `to`; the smaller row has `size`.
constexpr UpsampleSource upsample_source(const UpsampleAttributes& op, std::int64_t size,
                                         std::int64_t to) {
  if (!op.bilinear) return {to / op.factor, to / op.factor, 0};
  // (to + 1/2) / factor - 1/2, in units of half an element of the larger row.
  const std::int64_t unit = 2 * op.factor;
  const std::int64_t twice = 2 * to + 1 - op.factor;
  if (twice <= 0) return {0, 0, 0};
  const std::int64_t first = twice / unit;
  const std::int64_t second = first + 1 < size ? first + 1 : first;
  return {first, second, static_cast<float>(twice % unit) / static_cast<float>(unit)};
}

/// First place of the larger row that may be made of place `from`, and the one behind the last.
constexpr std::int64_t upsample_begin(const UpsampleAttributes& op, std::int64_t from) {
  return op.bilinear && from > 0 ? (from - 1) * op.factor : from * op.factor;
}
constexpr std::int64_t upsample_end(const UpsampleAttributes& op, std::int64_t size,
                                    std::int64_t from) {
  const std::int64_t end = from + (op.bilinear ? 2 : 1);
  return (end < size ? end : size) * op.factor;
}

}  // namespace tidepool::nn
