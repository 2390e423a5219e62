// How many programs a test attacks a claim with.
//
// Of planners times budgets times models a test tries a part in which each meets each of the
// others. With TIDEPOOL_ATTACKS=10000 it tries all, and attacks are of so many programs.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <ranges>
#include <vector>

#include "support/sanitized.h"

namespace tidepool::testing {

/// Fewer under sanitizers; what TIDEPOOL_ATTACKS says where it is set.
inline std::uint64_t attacks(std::uint64_t usual) {
  usual = usual_or(usual, usual / 5);
  const char* text = std::getenv("TIDEPOOL_ATTACKS");
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

/// Whether a test tries all there is, and not only a part in which each kind is met: where
/// TIDEPOOL_ATTACKS is set.
inline bool thorough() { return std::getenv("TIDEPOOL_ATTACKS") != nullptr; }

/// How many of something a test tries: `all` where it is thorough.
template <class T>
T some(T usual, T all) {
  return thorough() ? all : usual;
}

/// The part of a list that a test tries: each `one_in`th, from another one on for every `turn`. In
/// `one_in` turns that follow one another each is tried once.
template <std::ranges::random_access_range List>
auto in_turn(const List& all, std::size_t turn, std::size_t one_in) {
  if (thorough()) one_in = 1;
  std::vector<std::ranges::range_value_t<List>> tried;
  for (std::size_t i = turn % one_in; i < std::size(all); i += one_in) tried.push_back(all[i]);
  return tried;
}

/// Whether a share of the programs says something: that an attack met what it is to meet.
inline bool enough_for_shares(std::uint64_t programs) { return programs >= 100; }

}  // namespace tidepool::testing
