// Sums over the neighbours of each node, by hand: a product with a sparse matrix would copy the
// rows of each entry first. Sums are in the order of the entries, whatever the CPU.
#pragma once

#include <array>
#include <cstdint>

#include "planners/published/dqn/q_network.h"

namespace tidepool::dqn {

/// A row for each node, of one of two matrices.
struct PickedRows {
  std::array<const float*, 2> matrices{};
  const std::uint8_t* pick = nullptr;  ///< of each node: 0 or 1

  [[nodiscard]] const float* row(std::size_t node, std::size_t width) const {
    return matrices[pick[node]] + node * width;
  }
};

/// out[v] = ReLU(constant[v] + sum of in[u] over the neighbours u of v).
void sum_and_rectify(const EventGraph& graph, std::size_t width, const PickedRows& in,
                     const PickedRows& constant, float* out);

/// out[v] = sum of in[u] over the neighbours u of v: what the gradient of the above asks, as the
/// graph is symmetric.
void sum_neighbours(const EventGraph& graph, std::size_t width, const float* in, float* out);

}  // namespace tidepool::dqn
