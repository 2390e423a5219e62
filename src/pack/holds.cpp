#include "pack/holds.h"

#include <algorithm>
#include <numeric>

#include "base/at.h"

namespace tidepool {
namespace {

/// Buffers of each kind by begin. What conflicts with a buffer and begins behind it is a range of
/// these lists, what begins before it and conflicts in the next cycle is the first part of them.
class Begins {
 public:
  explicit Begins(std::span<const Hold> holds) : holds_(holds), rank_(holds.size()) {
    std::vector<std::int32_t> order(holds.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return holds_[at(a)].begin < holds_[at(b)].begin;
    });
    for (std::size_t k = 0; k < order.size(); ++k) {
      rank_[at(order[k])] = static_cast<std::int32_t>(k);
      List& list = lists_[at(holds_[at(order[k])].kind)];
      list.ids.push_back(order[k]);
      list.begins.push_back(holds_[at(order[k])].begin);
      list.ranks.push_back(static_cast<std::int32_t>(k));
    }
  }

  /// Calls `visit(others, next_cycle)` for spans that together have every conflict of `buffer` of
  /// which it is the first, and those with what begins before it in the next cycle.
  template <class Visit>
  void for_each(std::int32_t buffer, Visit&& visit) const {
    const Hold& own = holds_[at(buffer)];
    for (std::size_t kind = 0; kind < Hold::kKinds; ++kind) {
      const List& list = lists_[kind];
      const std::span<const std::int32_t> ids(list.ids);
      const auto self = place(list.ranks, rank_[at(buffer)]);
      const auto behind = self + (at(own.kind) == kind ? 1 : 0);
      const auto until = place(list.begins, own.until[kind]);
      if (until > behind) visit(ids.subspan(behind, until - behind), false);
      const auto next = std::min(place(list.begins, own.until_next[kind]), self);
      if (next > 0) visit(ids.first(next), true);
    }
  }

 private:
  struct List {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> begins;
    std::vector<std::int32_t> ranks;  ///< in the order of all buffers
  };
  static std::size_t place(const std::vector<std::int32_t>& list, std::int32_t value) {
    return static_cast<std::size_t>(std::lower_bound(list.begin(), list.end(), value) -
                                    list.begin());
  }

  std::span<const Hold> holds_;
  std::vector<std::int32_t> rank_;  ///< per buffer, in the order of all
  std::array<List, Hold::kKinds> lists_;
};

constexpr std::size_t kAskEvery = 64;  ///< buffers

bool asked_to_stop(const Stop& stop, std::size_t buffer) {
  return buffer % kAskEvery == 0 && stop.requested();
}

/// Calls `visit(a, b)` once for each pair that conflicts, until it is asked to stop.
template <class Visit>
void for_each_pair(std::span<const Hold> holds, const Begins& begins, const Stop& stop,
                   Visit&& visit) {
  for (std::int32_t a = 0; a < static_cast<std::int32_t>(holds.size()); ++a) {
    if (asked_to_stop(stop, at(a))) return;
    const auto kind = at(holds[at(a)].kind);
    begins.for_each(a, [&](std::span<const std::int32_t> others, bool next_cycle) {
      for (const std::int32_t b : others) {
        // Those that conflict within the cycle too are pairs of the other.
        if (!next_cycle || holds[at(a)].begin >= holds[at(b)].until[kind]) visit(a, b);
      }
    });
  }
}

}  // namespace

std::int64_t most_conflicts(std::span<const Hold> holds) {
  const Begins begins(holds);
  std::int64_t count = 0;
  for (std::int32_t a = 0; a < static_cast<std::int32_t>(holds.size()); ++a) {
    begins.for_each(a, [&](std::span<const std::int32_t> others, bool) {
      count += static_cast<std::int64_t>(others.size());
    });
  }
  return count;
}

PackProblem hold_graph(const PackProblem& problem) { return *hold_graph(problem, {}); }

std::optional<PackProblem> hold_graph(const PackProblem& problem, const Stop& stop) {
  PackProblem graph = problem;
  graph.holds.clear();
  const Begins begins(problem.holds);
  const std::size_t n = problem.holds.size();
  std::vector<std::int32_t>& start = graph.neighbour_start;
  start.assign(n + 1, 0);
  for_each_pair(problem.holds, begins, stop, [&](std::int32_t a, std::int32_t b) {
    ++start[at(a) + 1];
    ++start[at(b) + 1];
  });
  if (stop.requested()) return std::nullopt;
  std::partial_sum(start.begin(), start.end(), start.begin());
  graph.neighbours.resize(at(start[n]));
  std::vector<std::int32_t> next(start.begin(), start.end() - 1);
  for_each_pair(problem.holds, begins, stop, [&](std::int32_t a, std::int32_t b) {
    graph.neighbours[at(next[at(a)]++)] = b;
    graph.neighbours[at(next[at(b)]++)] = a;
  });
  for (std::size_t i = 0; i < n; ++i) {
    if (asked_to_stop(stop, i)) return std::nullopt;
    std::sort(graph.neighbours.begin() + start[i], graph.neighbours.begin() + start[i + 1]);
  }
  return graph;
}

Bytes held_at_once(const PackProblem& problem) {
  struct Change {
    std::int32_t position;
    Bytes bytes;
  };
  std::vector<Change> changes;
  Bytes held = 0;
  for (std::size_t i = 0; i < problem.holds.size(); ++i) {
    const Hold& hold = problem.holds[i];
    const auto until = *std::min_element(hold.until.begin(), hold.until.end());
    const auto next = *std::min_element(hold.until_next.begin(), hold.until_next.end());
    if (next > 0) {
      held += problem.sizes[i];
      if (next > hold.begin) continue;  // until it begins again
      changes.push_back({next, -problem.sizes[i]});
    }
    changes.push_back({hold.begin, problem.sizes[i]});
    changes.push_back({until, -problem.sizes[i]});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.position != b.position ? a.position < b.position : a.bytes < b.bytes;
  });
  Bytes most = held;
  for (const Change& change : changes) {
    held += change.bytes;
    most = std::max(most, held);
  }
  return most;
}

}  // namespace tidepool
