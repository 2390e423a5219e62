// Scaled dot-product attention with several heads (Vaswani et al. 2017), in ops of their own, so
// that planners see the square matrices between them:
//   p = softmax(scale * q k'), y = p v
// q, k, v and y are samples x tokens x width; a head is a range of width / heads columns. The
// square matrices are samples x heads x tokens x tokens, in plain layout. The products of the
// backward pass are of the same three kinds:
//   dv = p' dy, dp = dy v', ds = p * (dp - sum of p dp), dq = scale * ds k, dk = scale * ds' q
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct AttentionScale {
  float scale = 1;  ///< of the product
};

/// Two flops for each pair of tokens and column.
inline double attention_flops(const TensorDesc& rows) {
  return 2 * count(rows) * static_cast<double>(rows.dims[1]);
}

/// s[i][j] = scale * (a[i] . b[j]) in each head
struct AttentionScores : AttentionScale {
  static constexpr const char* name = "attention_scores";
  static constexpr auto operands = std::array{reads("a"), reads("b"), writes("s")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return attention_flops(o[0]); }
};

/// y[i] = scale * sum over j of s[i][j] b[j]
struct AttentionMix : AttentionScale {
  static constexpr const char* name = "attention_mix";
  static constexpr auto operands = std::array{reads("s"), reads("b"), writes("y")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return attention_flops(o[1]); }
};

/// y[j] = scale * sum over i of s[i][j] a[i]
struct AttentionMixTransposed : AttentionScale {
  static constexpr const char* name = "attention_mix_transposed";
  static constexpr auto operands = std::array{reads("s"), reads("a"), writes("y")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return attention_flops(o[1]); }
};

/// Of each row. Causal: row i takes the columns 0 to i, and the others are 0.
struct AttentionSoftmaxForward {
  bool causal = false;

  static constexpr const char* name = "attention_softmax_forward";
  static constexpr auto operands =
      std::array{reads("s", When::apart), writes("p", When::apart), updates("p", When::in_place)};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 5 * count(o[0]); }
};

/// ds[i][j] = p[i][j] * (dp[i][j] - sum over k of p[i][k] dp[i][k]); what a mask left out has p =
/// 0.
struct AttentionSoftmaxBackward {
  static constexpr const char* name = "attention_softmax_backward";
  static constexpr auto operands =
      std::array{reads("p"), reads("dp", When::apart), writes("ds", When::apart),
                 updates("d", When::in_place)};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 4 * count(o[0]); }
};

}  // namespace tidepool::nn
