// Batch norm over channels. In training with the statistics of the batch.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct BatchNormAttributes {
  float epsilon = 1e-5F;
};

struct BatchNormForward : BatchNormAttributes {
  static constexpr const char* name = "batch_norm_forward";
  static constexpr auto operands = std::array{reads("x"),  reads("scale"), reads("shift"),
                                              writes("y"), writes("mean"), writes("variance")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 7 * count(o[0]); }
};

struct BatchNormBackward : BatchNormAttributes {
  static constexpr const char* name = "batch_norm_backward";
  static constexpr auto operands = std::array{
      reads("x"),        reads("dy", When::apart), updates("d", When::in_place), reads("mean"),
      reads("variance"), reads("scale"),           writes("dx", When::apart),    gradient("dscale"),
      gradient("dshift")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 11 * count(o[0]); }
};

/// With the running statistics.
struct BatchNormInference : BatchNormAttributes {
  static constexpr const char* name = "batch_norm_inference";
  static constexpr auto operands = std::array{
      reads("x"), reads("scale"), reads("shift"), reads("running_mean"), reads("running_variance"),
      writes("y")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 2 * count(o[0]); }
};

/// Carries the statistics of a batch into the running ones.
struct BatchNormStatistics {
  float momentum = 0.1F;  ///< weight of the new value
  /// Values behind one batch variance (N*H*W), for the unbiased running variance.
  std::int64_t values = 0;

  static constexpr const char* name = "batch_norm_statistics";
  static constexpr auto operands = std::array{reads("mean"), reads("variance"),
                                              updates("running_mean"), updates("running_variance")};
  static constexpr auto role = OpRole::state_update;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 6 * count(o[0]); }
};

}  // namespace tidepool::nn
