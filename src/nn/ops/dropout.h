// Dropout with counter-based random numbers: recomputing, rounds and devices repeat them.
#pragma once

#include <array>

#include "base/random.h"
#include "nn/ops/control_block.h"
#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct DropoutAttributes {
  float rate = 0;  ///< probability of a zero; the rest is scaled by 1/(1 - rate)
  /// Names the layer in the counter-based generator; forward and backward share it.
  std::uint64_t random_key = 0;

  [[nodiscard]] float scale() const { return 1 / (1 - rate); }
};

/// mask: u8, 1 where kept.
struct DropoutForward : DropoutAttributes {
  static constexpr const char* name = "dropout_forward";
  static constexpr auto operands =
      std::array{reads("x", When::apart), updates("y", When::in_place), reads("control"),
                 writes("y", When::apart), writes("mask", When::apart)};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::always;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

/// In place it makes the mask anew.
struct DropoutBackward : DropoutAttributes {
  static constexpr const char* name = "dropout_backward";
  static constexpr auto operands =
      std::array{reads("dy", When::apart), reads("mask", When::apart), writes("dx", When::apart),
                 updates("d", When::in_place), reads("control", When::in_place)};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::in_place;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

/// The keep decision of dropout for one element: a pure function of its arguments, on every
/// device. `element` is the logical (plain layout) index in the full batch.
///   keep iff dropout_bits(dropout_key(seed, key, iteration), element) >= rate * 2^32
constexpr std::uint64_t dropout_key(std::uint64_t seed, std::uint64_t random_key,
                                    std::uint64_t iteration) {
  return hash_combine(hash_combine(mix64(seed), random_key), iteration);
}
/// rate * 2^32, for a rate in [0, 1).
std::uint32_t dropout_threshold(float rate);
/// 32 random bits of one element under a key from `dropout_key`.
constexpr std::uint32_t dropout_bits(std::uint64_t key, std::uint32_t element) {
  // Two rounds of a 32-bit multiply-xorshift (Wellons' lowbias32) with the 64-bit key injected
  // before each: vectorises, and passes the uniformity test in tests/nn.
  std::uint32_t x = element ^ static_cast<std::uint32_t>(key);
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  x ^= static_cast<std::uint32_t>(key >> 32);
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

}  // namespace tidepool::nn
