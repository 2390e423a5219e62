// NetworkWeights: the matrices of the Q-network (DQN paper, equations 1 to 3), how they begin, and
// the form in which they are saved.
//
// Note [Network file]. Bytes, whole numbers and floats in the order of x86: the eight letters
// "TIDEPOOL", the word "qnetwork", form 1, width, hops (4 bytes each), then the matrices W1 to W8,
// row by row, as floats of 4 bytes, and at last a hash of everything before (8 bytes).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tidepool::dqn {

inline constexpr std::int32_t kFeatures = 6;      ///< of a node, the validity of its action last
inline constexpr std::int32_t kMostWidth = 4096;  ///< of a network that can be read or made
inline constexpr std::int32_t kMostHops = 64;

struct NetworkWeights {
  std::int32_t width = 0;                        ///< p
  std::int32_t hops = 0;                         ///< T
  std::array<std::vector<float>, 8> matrices{};  ///< W1 to W8, row by row
};

/// Rows and columns of W1 to W8 at width p.
constexpr std::array<std::pair<std::int32_t, std::int32_t>, 8> matrix_shapes(std::int32_t p) {
  return {{{p, kFeatures}, {p, p}, {p, p}, {p, 1}, {p, p}, {p, p}, {1, 3 * p}, {p, p}}};
}

/// Of the widest network's file; see Note [Network file].
constexpr std::size_t most_network_bytes() {
  std::size_t bytes = 64;
  for (const auto& [rows, columns] : matrix_shapes(kMostWidth)) {
    bytes += sizeof(float) * static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
  return bytes;
}

/// Standard deviations of weights that keep node states at the scale of the features: W2 and W3 are
/// divided by the five entries that a node has among its neighbours.
inline std::array<double, 8> usual_sizes(std::int32_t width) {
  constexpr double kEntries = 5;  // itself, two in time, two of the same tensor
  const double usual = std::sqrt(2.0 / width);
  return {1 / std::sqrt(double{kFeatures}),
          usual / kEntries,
          usual / kEntries,
          1,
          usual,
          usual,
          1 / std::sqrt(3.0 * width),
          usual};
}

/// Uniform, of the usual sizes, from the seed alone. W7 is ten times smaller: Q begins near zero.
NetworkWeights initial_weights(std::int32_t width, std::int32_t hops, std::uint64_t seed);

std::string write_network(const NetworkWeights& weights);
/// Fails with `bad_input`, saying what is wrong, where the bytes are no network.
Result<NetworkWeights> read_network(std::string_view bytes);

}  // namespace tidepool::dqn
