// What is still needed when the work of a device is done.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

/// Computes nothing: its operands have to be on the device, whole, when all before it is done. The
/// naive accumulation of gradients begins there.
struct Hold {
  std::int64_t inputs = 1;

  static constexpr const char* name = "hold";
  static constexpr auto operands = std::array{reads("x", When::each_input)};
  static constexpr auto role = OpRole::state_update;  // runs once
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands /*operands*/) const { return 0; }
};

}  // namespace tidepool::nn
