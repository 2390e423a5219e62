#include "planners/published/dqn/torch/module/graph_sums.h"

#include <algorithm>
#include <cstddef>

// Only sums: wider vectors do not change a bit.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TIDEPOOL_WIDER __attribute__((target_clones("avx2", "default")))
#else
#define TIDEPOOL_WIDER
#endif

namespace tidepool::dqn {
namespace {

constexpr std::size_t kBlock = 32;  // columns whose sums stay in registers

}  // namespace

TIDEPOOL_WIDER
void sum_and_rectify(const EventGraph& graph, std::size_t width, const PickedRows& in,
                     const PickedRows& constant, float* out) {
  const auto nodes = static_cast<std::size_t>(graph.nodes());
  const std::int32_t* const first = graph.first_neighbour.data();
  for (std::size_t v = 0; v < nodes; ++v) {
    const float* const own = constant.row(v, width);
    float* const result = out + v * width;
    std::size_t column = 0;
    for (; column + kBlock <= width; column += kBlock) {
      float sums[kBlock];
      std::copy_n(own + column, kBlock, sums);
      for (std::int32_t e = first[v]; e < first[v + 1]; ++e) {
        const float* const other =
            in.row(static_cast<std::size_t>(graph.neighbours[static_cast<std::size_t>(e)]), width) +
            column;
        for (std::size_t i = 0; i < kBlock; ++i) sums[i] += other[i];
      }
      for (std::size_t i = 0; i < kBlock; ++i) result[column + i] = sums[i] > 0 ? sums[i] : 0;
    }
    for (; column < width; ++column) {
      float sum = own[column];
      for (std::int32_t e = first[v]; e < first[v + 1]; ++e) {
        sum += in.row(static_cast<std::size_t>(graph.neighbours[static_cast<std::size_t>(e)]),
                      width)[column];
      }
      result[column] = sum > 0 ? sum : 0;
    }
  }
}

TIDEPOOL_WIDER
void sum_neighbours(const EventGraph& graph, std::size_t width, const float* in, float* out) {
  const auto nodes = static_cast<std::size_t>(graph.nodes());
  const std::int32_t* const first = graph.first_neighbour.data();
  const std::int32_t* const neighbours = graph.neighbours.data();
  for (std::size_t v = 0; v < nodes; ++v) {
    float* const result = out + v * width;
    std::size_t column = 0;
    for (; column + kBlock <= width; column += kBlock) {
      float sums[kBlock] = {};
      for (std::int32_t e = first[v]; e < first[v + 1]; ++e) {
        const float* const other = in + static_cast<std::size_t>(neighbours[e]) * width + column;
        for (std::size_t i = 0; i < kBlock; ++i) sums[i] += other[i];
      }
      std::copy_n(sums, kBlock, result + column);
    }
    for (; column < width; ++column) {
      float sum = 0;
      for (std::int32_t e = first[v]; e < first[v + 1]; ++e) {
        sum += in[static_cast<std::size_t>(neighbours[e]) * width + column];
      }
      result[column] = sum;
    }
  }
}

}  // namespace tidepool::dqn
