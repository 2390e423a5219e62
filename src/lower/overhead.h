// Overhead: the time of an iteration over the time without a budget, minus one. There is one
// definition, for every command (DESIGN.md section 2).
#pragma once

#include <span>

#include "cost/machine.h"
#include "ir/program.h"

namespace tidepool {

/// What a budget costs, as a share of the time without one. Both times are of the same algorithms
/// and the same rounds, both measured or both predicted.
double overhead(Nanos iteration, Nanos unlimited);

/// An iteration without a budget as predicted: everything stays, the same algorithms, the copies of
/// inputs included. For programs on one device.
Nanos unlimited_time(const Program& program, const Machine& machine,
                     std::span<const std::int32_t> algorithms);

}  // namespace tidepool
