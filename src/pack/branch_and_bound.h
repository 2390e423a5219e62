// Exact packing of small problems: is there a packing of at most so many bytes?
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/stop.h"
#include "pack/pack.h"

namespace tidepool {

/// Which of several buffers that could be placed at the same offset comes first: the one with the
/// highest first key; ties by the second and the third key. Any choice gives the same answers in
/// the end.
struct BranchOrder {
  /// `load`: the most unplaced bytes in any clique of the buffer, when its part of the problem
  /// became independent. `failures`: how often the buffer was in the way, in the calls before.
  enum class Key { load, area, duration, size, conflicts, failures };
  std::array<Key, 3> keys{Key::load, Key::area, Key::duration};
  std::uint64_t shuffle = 0;  ///< perturbs the keys by up to a third; 0: does not
};

enum class Answer { found, impossible, gave_up };

/// Note [Canonical packings]
/// Of all packings of at most `capacity` bytes consider one whose offsets have the smallest sum,
/// and place its buffers by ascending offset (ties: by rank). Then
///  - every buffer lies on the ground or on top of a placed conflicting buffer, at its `floor`;
///  - offsets never fall, so a buffer whose floor is below the last offset has to wait until
///  something
///    raises it, and every clique needs (its lowest possible offset + its unplaced bytes) <=
///    capacity;
///  - no unplaced buffer fits below the one that is placed next, for it could sink there;
///  - of equal buffers (size and conflicts) the lower index comes first.
/// Searching only such sequences is complete. When the unplaced buffers fall apart into groups
/// without conflicts between them, each group is solved on its own, with a new ranking and without
/// the offsets that were passed over before; a group that failed is remembered by the floors of its
/// buffers (128 bits of hash), whatever lies below. (Moffitt, "MiniMalloc", ASPLOS 2023, sections 4
/// and 5, has the sequences, the cliques per time, the floors and the decomposition.)
class BranchAndBound {
 public:
  /// Takes no `fixed` buffers. Meant for up to some thousand buffers.
  explicit BranchAndBound(const PackProblem& problem);
  ~BranchAndBound();
  BranchAndBound(const BranchAndBound&) = delete;
  BranchAndBound& operator=(const BranchAndBound&) = delete;

  /// Searches at most `nodes` nodes; `stop` is asked every few hundred. Deterministic unless
  /// stopped.
  Answer fit(Bytes capacity, const BranchOrder& order, std::int64_t nodes, const Stop& stop);
  /// After `found`.
  [[nodiscard]] const Packing& packing() const;
  /// Nodes of the last call.
  [[nodiscard]] std::int64_t nodes() const;

 private:
  class Search;
  std::unique_ptr<Search> search_;
};

}  // namespace tidepool
