// Which branches an iteration runs (Huang et al. 2016, "Deep Networks with Stochastic Depth").
#pragma once

#include <cstdint>
#include <span>

namespace tidepool::nn {

/// Section 3, equation 4: block `index` of `blocks`, counted from 1, survives with a probability
/// that falls evenly from that of the input, 1, to that of the last block.
double survival_probability(int index, int blocks, double of_last = 0.5);

/// Bit g: branch g runs in this iteration, with probability survival[g] and independent of the
/// others. A pure function of its arguments: a resumed training, each round, each device and an
/// unlimited run draw the same. Bits of no branch are on.
std::uint32_t draw_branches(std::span<const double> survival, std::uint64_t seed,
                            std::int64_t iteration);

}  // namespace tidepool::nn
