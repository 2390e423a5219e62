// A number added to every element of a channel: the bias of convolutions. Planners that look for
// convolutions do not take it for one.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct ChannelBiasForward {
  static constexpr const char* name = "channel_bias_forward";
  static constexpr auto operands = std::array{updates("y"), reads("bias")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

struct ChannelBiasBackward {
  static constexpr const char* name = "channel_bias_backward";
  static constexpr auto operands = std::array{reads("dy"), gradient("dbias")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

}  // namespace tidepool::nn
