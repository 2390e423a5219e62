// Concatenation of images along their channels.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct ConcatForward {
  std::int64_t inputs = 2;

  static constexpr const char* name = "concat_forward";
  static constexpr auto operands = std::array{reads("x", When::each_input), writes("y")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands /*o*/) const { return 0; }
};

/// The gradient of one input: so many channels of dy as dx has.
struct ConcatBackward {
  std::int64_t first_channel = 0;  ///< of dy

  static constexpr const char* name = "concat_backward";
  static constexpr auto operands = std::array{reads("dy"), writes("dx")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands /*o*/) const { return 0; }
};

}  // namespace tidepool::nn
