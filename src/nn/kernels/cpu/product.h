// Product: a product of two matrices by oneDNN, written or added to what is there.
#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "base/bytes.h"

namespace tidepool::nn::cpu {

/// A row-major matrix in floats that lie so far apart, or its transpose.
struct Matrix {
  std::int64_t rows, columns, pitch;
  bool transposed = false;

  [[nodiscard]] dnnl::memory::desc desc() const;
};

inline Matrix transposed(Matrix m) {
  m.transposed = true;
  return m;
}

enum class Sum : std::uint8_t {
  fresh,        ///< c = a b
  added,        ///< c += a b, in any order
  added_whole,  ///< the same with the bits of adding a b afterwards, see Note [Whole sums]
};

// Note [Whole sums]. oneDNN adds a product's result to what is there in one piece, with the bits of
// an addition afterwards, as long as the sums over the inner dimension have no more terms than
// kInOnePiece and the result is no vector, whose sums threads share. The product itself then has
// the bits of oneDNN's inner product, too. Longer sums it takes in pieces with AVX and AVX2, and in
// another order than the inner product with AVX-512.
inline constexpr std::int64_t kInOnePiece = 96;

/// Addresses are those of each run. Made and run under the same TeamSize.
class Product {
 public:
  /// Nothing where oneDNN does not have it.
  static std::optional<Product> make(const Matrix& a, const Matrix& b, const Matrix& c, Sum sum);

  [[nodiscard]] Bytes scratch() const {
    return static_cast<Bytes>(memories_[3].get_desc().get_size());
  }
  void run(const float* a, const float* b, float* c, std::byte* scratch);

 private:
  Product(const dnnl::matmul::primitive_desc& desc, const std::vector<dnnl::memory::desc>& descs);

  dnnl::matmul primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace tidepool::nn::cpu
