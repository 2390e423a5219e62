// A chain whose free times are easy to work out by hand.
#pragma once

#include <fmt/format.h>

#include "support/program_builder.h"

namespace tidepool::testing {

/// x0 is fed; forward i reads x(i) and makes x(i+1); backward i reads x(i) and a gradient of ten
/// bytes and makes the next. Five layers, 1000 bytes and 1000 ns each: with all kept the load's
/// peak is 6010 at backward4. One byte a nanosecond each way: x(i) is idle for 2000 * (4 - i), so
/// the free times of x1, x2, x3 are 4000, 2000, 0, and that of x0, which the host has, is 7000.
struct CapuchinChain {
  enum : std::int32_t { kForward0 = 1, kForward2 = 3, kBackward4 = 6, kBackward3, kBackward2 };
  static constexpr int kLayers = 5;

  static Program make() {
    using enum AccessMode;
    ProgramBuilder b;
    std::vector<TensorId> x{b.tensor("x0", 1000)};
    b.host("feed", {{x[0], write}});
    for (int i = 0; i < kLayers; ++i) {
      x.push_back(b.tensor(fmt::format("x{}", i + 1), 1000));
      b.device(fmt::format("forward{}", i), {{x[i], read}, {x[i + 1], write}}, Nanos{1000});
    }
    TensorId gradient = x.back();
    for (int i = kLayers; i-- > 0;) {
      const TensorId next = b.tensor(fmt::format("g{}", i), 10);
      b.device(fmt::format("backward{}", i), {{gradient, read}, {x[i], read}, {next, write}},
               Nanos{1000});
      gradient = next;
    }
    return b.build();
  }
};

}  // namespace tidepool::testing
