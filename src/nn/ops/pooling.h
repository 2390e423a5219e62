// Pools over windows.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"
#include "nn/ops/window.h"

namespace tidepool::nn {

/// index: u8, the position in the window; of equal values the first.
struct MaxPoolForward : Window {
  static constexpr const char* name = "max_pool_forward";
  static constexpr auto operands = std::array{reads("x"), writes("y"), writes("index")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[1]) * area(); }
};

struct MaxPoolBackward : Window {
  static constexpr const char* name = "max_pool_backward";
  static constexpr auto operands =
      std::array{reads("dy"), reads("index"), writes("dx"), reads("x", When::reads_forward),
                 reads("y", When::reads_forward)};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

/// The mean of what the window has of the image: padding does not count.
struct AvgPoolForward : Window {
  static constexpr const char* name = "avg_pool_forward";
  static constexpr auto operands = std::array{reads("x"), writes("y")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[1]) * area(); }
};

struct AvgPoolBackward : Window {
  static constexpr const char* name = "avg_pool_backward";
  static constexpr auto operands = std::array{
      reads("dy"), writes("dx"), reads("x", When::reads_forward), reads("y", When::reads_forward)};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]) * area(); }
};

}  // namespace tidepool::nn
