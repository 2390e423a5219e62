// Softmax cross-entropy, and the count of right answers. Logits are a matrix with a row for each
// label, or images with a channel for each class, whose labels are images without channels: one for
// each pixel. What has a negative label adds nothing to either.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct LossAttributes {
  std::int64_t full_batch = 1;  ///< the loss is the mean over this many labels
};

struct SoftmaxLossForward : LossAttributes {
  static constexpr const char* name = "softmax_loss_forward";
  static constexpr auto operands =
      std::array{reads("logits"), reads("labels"), writes("loss"), writes("probabilities")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 5 * count(o[0]); }
};

struct SoftmaxLossBackward : LossAttributes {
  static constexpr const char* name = "softmax_loss_backward";
  static constexpr auto operands =
      std::array{reads("probabilities"), reads("labels"), writes("dlogits")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

/// One i32: labels that have the largest logit, of equal ones the first.
struct CountCorrect {
  static constexpr const char* name = "count_correct";
  static constexpr auto operands = std::array{reads("logits"), reads("labels"), writes("count")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

}  // namespace tidepool::nn
