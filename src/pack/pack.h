// Address assignment: give every buffer an offset so that no two conflicting buffers overlap and
// the footprint is small (offline dynamic storage allocation; SmartPool section III).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/stop.h"

namespace tidepool {

/// When a buffer lives: half-open, in any unit.
struct Lifetime {
  std::int64_t lower = 0;
  std::int64_t upper = 0;  ///< above `lower`
};

/// How long a buffer holds its bytes in a cycle that repeats. What begins in a cycle is of a few
/// kinds (the streams of a schedule): each kind comes in an order of its own, and how early a
/// buffer may take bytes over can differ by its kind.
struct Hold {
  static constexpr std::size_t kKinds = 4;
  std::int32_t begin = 0;  ///< position in the cycle
  std::int32_t kind = 0;   ///< of its begin
  /// Per kind: what begins before this position, at or behind `begin`, conflicts. Above `begin`;
  /// kNever: all of the cycle.
  std::array<std::int32_t, kKinds> until{};
  /// Per kind, of the cycle after: what begins before this position, and before `begin`, conflicts.
  std::array<std::int32_t, kKinds> until_next{};

  /// Conflicts with everything.
  static Hold for_ever();
  [[nodiscard]] bool is_for_ever() const {
    return *std::min_element(until.begin(), until.end()) == kNever &&
           *std::min_element(until_next.begin(), until_next.end()) == kNever;
  }
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();
};

inline bool conflict(const Hold& a, const Hold& b) {
  const Hold& first = a.begin <= b.begin ? a : b;
  const Hold& then = a.begin <= b.begin ? b : a;
  return then.begin < first.until[static_cast<std::size_t>(then.kind)] ||
         first.begin < then.until_next[static_cast<std::size_t>(first.kind)];
}

/// Buffers and who must not overlap whom. Conflicts come in one of three forms. A symmetric graph
/// serves everything; of a large network it would have hundreds of millions of entries. Plain
/// lifetimes conflict where they intersect, holds as `conflict` says: neither needs a graph.
struct PackProblem {
  std::vector<Bytes> sizes;
  std::vector<std::int32_t> starts;  ///< position of each buffer's begin, to break ties
  std::vector<Bytes> fixed;          ///< where a buffer has to be, or -1; empty: none is
  /// A larger footprint is of no use: a packer may stop there, its packing unfinished.
  Bytes give_up_above = std::numeric_limits<Bytes>::max();
  /// Asked now and then: when it says so a packer stops, its packing unfinished.
  Stop stop;
  std::vector<Lifetime> lifetimes;            ///< plain lifetimes, or empty
  std::vector<Hold> holds;                    ///< or holds; both empty: the graph says it all
  std::vector<std::int32_t> neighbour_start;  ///< CSR: size + 1 entries; only of a graph
  std::vector<std::int32_t> neighbours;

  [[nodiscard]] bool has_graph() const { return lifetimes.empty() && holds.empty(); }
  /// Only of a graph.
  [[nodiscard]] std::span<const std::int32_t> conflicts(std::size_t buffer) const {
    return std::span(neighbours)
        .subspan(static_cast<std::size_t>(neighbour_start[buffer]),
                 static_cast<std::size_t>(neighbour_start[buffer + 1] - neighbour_start[buffer]));
  }
};

struct Packing {
  std::vector<Bytes> offsets;
  Bytes footprint = 0;  ///< highest byte used
};

using PackFunction = Packing (*)(const PackProblem&);

struct Packer {
  std::string_view name;
  PackFunction pack;
  std::string_view summary;  ///< half a line for people
};

/// All greedy packers, the default first: at most a second for 20,000 buffers. Those from the third
/// on need lifetimes or a graph. The search (search.h) is not among them.
std::span<const Packer> packers();
/// Those lowering tries on every attempt: SmartPool's two.
inline std::span<const Packer> smartpool_packers() { return packers().first(2); }

/// Two conflicting buffers that overlap because both are fixed, if there are any.
std::optional<std::pair<std::int32_t, std::int32_t>> fixed_clash(const PackProblem& problem);

/// Buffers by descending key, ties by descending size, then by start, then by index.
std::vector<std::int32_t> order_by(const PackProblem& problem, std::span<const double> keys);

/// Buffers from large to small, ties by start, then by index: the order of SmartPool.
std::vector<std::int32_t> by_size_descending(const PackProblem& problem);

/// Places fixed buffers, then the others in the given order. `choose_smallest_hole`: best fit;
/// otherwise first fit. A hole is a maximal free range between already placed conflicting buffers;
/// when none is large enough the buffer goes above them all. An unfinished packing has the largest
/// footprint that can be written.
Packing place_in_order(const PackProblem& problem, std::span<const std::int32_t> order,
                       bool choose_smallest_hole);

}  // namespace tidepool
