// tp::pack: addresses for buffers of known sizes and lifetimes, in as few bytes as possible.
//
//   const std::vector<tp::Buffer> buffers{{.bytes = 64, .begin = 0, .end = 2},
//                                         {.bytes = 32, .begin = 1, .end = 3},
//                                         {.bytes = 64, .begin = 2, .end = 4}};
//   const tp::Packing packing = tp::pack(buffers, {.time_limit = 1s});
//   std::cout << packing.footprint << " bytes; buffer 2 at " << packing.offsets[2] << "\n";
//
// Errors are thrown as tp::Error. Calls may run at the same time.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "tidepool/error.h"

namespace tp {

/// Lives at begin <= t < end, in any unit.
struct Buffer {
  std::int64_t bytes = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct PackOptions {
  std::chrono::nanoseconds time_limit = std::chrono::seconds(10);
  std::uint64_t seed = 0;
  std::int64_t target = 0;  ///< bytes that are good enough; 0: only the best are
  /// Above 0: the search ends after so many rounds, and no clock is asked.
  std::int32_t rounds = 0;
  std::stop_token stop{};  ///< the best packing so far then
};

struct Packing {
  std::vector<std::int64_t> offsets;  ///< in the order of the buffers
  std::int64_t footprint = 0;         ///< the highest byte used
  std::int64_t lower_bound = 0;       ///< no packing is smaller
  bool proven_optimal = false;        ///< the footprint is the lower bound
  std::string found_by{};
};

/// TP_USAGE: a buffer has no bytes, or ends before it begins.
TP_API Packing pack(std::span<const Buffer> buffers, const PackOptions& options = {});

}  // namespace tp
