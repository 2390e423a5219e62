// Programs for AutoSwap: one whose scores and loads are easy to work out by hand, and random ones.
#pragma once

#include <string>
#include <vector>

#include "ir/load_profile.h"
#include "planners/toolkit/swap_candidates.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool::testing {

constexpr Nanos ms(int n) { return Nanos{n * 1'000'000}; }
constexpr Bytes mib(double n) { return static_cast<Bytes>(n * static_cast<double>(kMiB)); }
inline constexpr double kMib = static_cast<double>(kMiB);

/// Two MiB a millisecond each way, no latency.
inline Machine two_mib_a_ms() {
  Machine m;
  m.name = "test";
  m.set_alignment(512);
  m.to_host() = {2 * kMib * 1000, Nanos{0}};
  m.to_device() = m.to_host();
  return m;
}

/// Loads in MiB: A 4.5, B 20.5, C 52.5, D 117.5 (the peak), E 53.5, F 4. Gaps over D: x (A to F,
/// 50 ms), y (B to E, 30 ms), z (C to E, 10 ms), s (A to E, too small to be a candidate).
struct SwapExample {
  Program program = make();
  AccessIndex index{program};
  SwapCandidates candidates{program, index, two_mib_a_ms(), std::vector<std::int32_t>(6, 0)};

  static Program make() {
    using enum AccessMode;
    ProgramBuilder b;
    const TensorId x = b.tensor("x", mib(4));
    const TensorId y = b.tensor("y", mib(16));
    const TensorId z = b.tensor("z", mib(32));
    const TensorId s = b.tensor("s", mib(0.5));
    const TensorId d = b.tensor("d", mib(1));
    b.device("A", {{x, write}, {s, write}}, ms(10));
    b.device("B", {{y, write}}, ms(10));
    b.device("C", {{z, write}}, ms(20));
    b.device("D", {{d, write}}, ms(10), mib(64));
    b.device("E", {{y, read}, {z, read}, {s, read}, {d, read}}, ms(10));
    b.device("F", {{x, read}}, ms(10));
    Program program = b.build();
    for (Op& op : program.ops) op.random = true;  // other values in every iteration
    return program;
  }

  [[nodiscard]] std::vector<Bytes> load() const {
    return load_profile(program, index, 512, std::vector<std::int32_t>(6, 0)).at_op;
  }
  /// Tensors swapped to get the peak to `limit`, in the order of picking.
  [[nodiscard]] std::vector<std::string> swapped(SwapScore score, Bytes limit) const {
    std::vector<std::string> names;
    for (const auto& pick : candidates.select(score, limit).picks) {
      const Gap& gap = index.gaps()[static_cast<std::size_t>(pick.gap)];
      names.push_back(program.tensors[static_cast<std::size_t>(gap.tensor)].name);
    }
    return names;
  }
};
inline constexpr GapId kX = 0;
inline constexpr GapId kY = 1;
inline constexpr GapId kZ = 2;
inline constexpr GapId kS = 3;

/// A random program whose tensors are large enough to be candidates, and links to match.
inline Program large_program(std::uint64_t seed, const RandomShape& shape = {}) {
  Program p = random_program(seed, shape);
  for (Tensor& t : p.tensors) t.bytes *= 256;
  for (Op& op : p.ops) {
    for (Algorithm& a : op.algorithms) {
      a.workspace *= 256;
      a.time *= 256;
    }
  }
  return p;
}

}  // namespace tidepool::testing
