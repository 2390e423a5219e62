// Embedding: each token's row of a table plus the row of its position, as BERT (Devlin et al. 2019)
// and GPT-2 (Radford et al. 2019) begin.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

/// y[n][t] = table[token[n][t]] + positions[t]. tokens: i32; what is no row of the table counts as
/// a row of zeros. There are at least as many positions as tokens in a sample.
struct EmbeddingForward {
  static constexpr const char* name = "embedding_forward";
  static constexpr auto operands =
      std::array{reads("tokens"), reads("table"), reads("positions"), writes("y")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[3]); }
};

/// Every row of both gradients is written. A row of the table sums its tokens in their order in the
/// batch, whatever the number of threads.
struct EmbeddingBackward {
  static constexpr const char* name = "embedding_backward";
  static constexpr auto operands =
      std::array{reads("tokens"), reads("dy"), gradient("dtable"), gradient("dpositions")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 2 * count(o[1]); }
};

}  // namespace tidepool::nn
