// Reorder: a copy of the same shape in another layout, or in the same.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct Reorder {
  static constexpr const char* name = "reorder";
  static constexpr auto operands = std::array{reads("from"), writes("to")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands /*operands*/) const { return 0; }
};

}  // namespace tidepool::nn
