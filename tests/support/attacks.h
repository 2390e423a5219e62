// How many programs a test attacks a claim with.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "support/sanitized.h"

namespace tidepool::testing {

/// Fewer under sanitizers; what TIDEPOOL_ATTACKS says where it is set.
inline std::uint64_t attacks(std::uint64_t usual) {
  usual = usual_or(usual, usual / 5);
  const char* text = std::getenv("TIDEPOOL_ATTACKS");
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

/// Whether a share of the programs says something: that an attack met what it is to meet.
inline bool enough_for_shares(std::uint64_t programs) { return programs >= 100; }

}  // namespace tidepool::testing
