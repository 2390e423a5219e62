// What tests leave out of a run on the stand-in for CUDA, whose tests run once with each of three
// seeds (cuda_standin/CMakeLists.txt).
#pragma once

#include <cstddef>
#include <cstdlib>

namespace tidepool::testing {

inline bool on_standin() { return std::getenv("STANDIN_SEED") != nullptr; }

/// Of things that are alike to a device, a third runs with each seed; on a GPU all.
inline bool is_of_this_run(std::size_t i) {
  const char* seed = std::getenv("STANDIN_SEED");
  return seed == nullptr || i % 3 == std::strtoull(seed, nullptr, 10) % 3;
}

}  // namespace tidepool::testing
