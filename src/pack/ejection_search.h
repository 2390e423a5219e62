// A local search for packings of at most so many bytes.
#pragma once

#include "base/random.h"
#include "base/stop.h"
#include "pack/conflict_index.h"

namespace tidepool {

/// Note [Ejection search]
/// Starts from a packing without the buffers that end above the capacity and puts these back one by
/// one. A buffer that finds no hole takes the place where those in its way cost least, and they are
/// ejected. Whoever found no hole becomes more expensive to eject, so that the search does not go
/// in circles and the difficult buffers settle first (Nagata and Braysy, "A powerful route
/// minimization heuristic for the vehicle routing problem with time windows", 2009, call it guided
/// ejection). Each step touches only the conflicts of one buffer. From time to time everything
/// sinks towards the ground or rises to the ceiling, which gathers holes.
class EjectionSearch {
 public:
  explicit EjectionSearch(const PackProblem& problem);

  /// True when it found a packing of at most `capacity` bytes from `start` within `steps`; `stop`
  /// is asked now and then. Deterministic for a seed unless stopped.
  bool fit(Bytes capacity, const Packing& start, std::uint64_t seed, std::int64_t steps,
           const Stop& stop);
  /// After true.
  [[nodiscard]] Packing packing() const;
  /// Steps of the last call.
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  using Id = std::int32_t;
  struct Range {
    Bytes begin;
    Bytes end;
    Id buffer;
  };
  [[nodiscard]] bool is_fixed(std::size_t i) const {
    return !problem_.fixed.empty() && problem_.fixed[i] >= 0;
  }
  void take_out(Id buffer);
  void gather(std::size_t buffer);
  [[nodiscard]] Bytes find_hole(Bytes size, bool tight) const;
  Bytes cheapest_place(Bytes size);
  void eject_from(Bytes offset, Bytes size);
  void settle(bool down);

  const PackProblem& problem_;
  ConflictIndex index_;
  Random random_{0};
  Bytes capacity_ = 0;
  std::int64_t steps_ = 0;
  std::vector<Bytes> offset_;  ///< -1: not placed
  std::vector<double> cost_;   ///< of ejecting
  std::vector<double> base_;
  std::vector<std::pair<Bytes, Id>> waiting_;  ///< a heap, the largest first
  std::vector<Range> ranges_;                  ///< of placed conflicts, by begin
  std::vector<std::pair<Bytes, double>> ends_;
  std::vector<Bytes> places_;
  std::vector<Id> order_;
};

}  // namespace tidepool
