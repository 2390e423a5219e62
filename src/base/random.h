// Counter-based random numbers: a pure function of (key, counter), so that recomputation,
// sub-batches and other devices repeat the same numbers.
#pragma once

#include <array>
#include <cstdint>

namespace tidepool {

/// SplitMix64's finaliser: a bijection with good avalanche. Used for hashing and for seeding.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t hash_combine(std::uint64_t a, std::uint64_t b) {
  return mix64(a ^ mix64(b));
}

/// Sequential generator over mix64 for tests, shuffles and searches. Satisfies
/// UniformRandomBitGenerator; the same seed gives the same numbers on every platform.
class Random {
 public:
  using result_type = std::uint64_t;
  explicit Random(std::uint64_t seed) : key_(mix64(seed)) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() { return mix64(key_ ^ mix64(counter_++)); }
  /// Uniform in [0, n); n > 0.
  std::uint64_t below(std::uint64_t n) {
    __extension__ using Wide = unsigned __int128;  // silences -Wpedantic
    return static_cast<std::uint64_t>((static_cast<Wide>((*this)()) * n) >> 64);
  }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace tidepool
