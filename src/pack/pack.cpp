#include "pack/pack.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "pack/best_fit.h"
#include "pack/first_fit.h"
#include "pack/greedy_orders.h"
#include "pack/hold_order.h"
#include "pack/ordered_placement.h"

namespace tidepool {

std::span<const Packer> packers() {
  static constexpr std::array<Packer, 6> kAll{{
      {"best-fit", pack_best_fit, "large buffers first, each in the smallest hole (SmartPool)"},
      {"first-fit", pack_first_fit, "large buffers first, each in the lowest hole (SmartPool)"},
      {"duration", pack_by_duration, "long lifetimes first, lowest hole"},
      {"area", pack_by_area, "large size x duration first, lowest hole"},
      {"conflicts", pack_by_conflicts, "most conflicting bytes first, lowest hole"},
      {"load", pack_by_load, "alive at the highest load first, lowest hole"},
  }};
  return kAll;
}

namespace {

/// Who conflicts with one buffer in focus: a test for each form of conflicts.
class GraphTest {
 public:
  explicit GraphTest(const PackProblem& problem)
      : problem_(problem), mark_(problem.sizes.size(), -1) {}
  void focus(std::size_t buffer) {
    focus_ = static_cast<std::int32_t>(buffer);
    for (const std::int32_t other : problem_.conflicts(buffer)) {
      mark_[static_cast<std::size_t>(other)] = focus_;
    }
  }
  [[nodiscard]] bool operator()(std::int32_t other) const {
    return mark_[static_cast<std::size_t>(other)] == focus_;
  }

 private:
  const PackProblem& problem_;
  std::vector<std::int32_t> mark_;
  std::int32_t focus_ = -1;
};

class LifetimeTest {
 public:
  explicit LifetimeTest(const PackProblem& problem) : lifetimes_(problem.lifetimes) {}
  void focus(std::size_t buffer) { lifetime_ = lifetimes_[buffer]; }
  [[nodiscard]] bool operator()(std::int32_t other) const {
    const Lifetime& lifetime = lifetimes_[static_cast<std::size_t>(other)];
    return lifetime.lower < lifetime_.upper && lifetime_.lower < lifetime.upper;
  }

 private:
  std::span<const Lifetime> lifetimes_;
  Lifetime lifetime_;
};

class HoldTest {
 public:
  explicit HoldTest(const PackProblem& problem) : holds_(problem.holds) {}
  void focus(std::size_t buffer) { hold_ = holds_[buffer]; }
  [[nodiscard]] bool operator()(std::int32_t other) const {
    return conflict(holds_[static_cast<std::size_t>(other)], hold_);
  }

 private:
  std::span<const Hold> holds_;
  Hold hold_;
};

/// Calls `work` with the test for the form that the problem has.
template <class Work>
auto with_test(const PackProblem& problem, Work&& work) {
  if (!problem.lifetimes.empty()) return work(LifetimeTest(problem));
  if (!problem.holds.empty()) return work(HoldTest(problem));
  return work(GraphTest(problem));
}

}  // namespace

Hold Hold::for_ever() {
  Hold hold;
  hold.until.fill(kNever);
  hold.until_next = hold.until;
  return hold;
}

std::optional<std::pair<std::int32_t, std::int32_t>> fixed_clash(const PackProblem& problem) {
  std::vector<std::int32_t> fixed;
  for (std::size_t i = 0; i < problem.fixed.size(); ++i) {
    if (problem.fixed[i] >= 0) fixed.push_back(static_cast<std::int32_t>(i));
  }
  using Pair = std::optional<std::pair<std::int32_t, std::int32_t>>;
  if (fixed.size() < 2) return std::nullopt;
  return with_test(problem, [&](auto conflict) -> Pair {
    for (auto first = fixed.begin(); first != fixed.end(); ++first) {
      const auto a = static_cast<std::size_t>(*first);
      conflict.focus(a);
      for (auto second = first + 1; second != fixed.end(); ++second) {
        const auto b = static_cast<std::size_t>(*second);
        if (problem.fixed[a] < problem.fixed[b] + problem.sizes[b] &&
            problem.fixed[b] < problem.fixed[a] + problem.sizes[a] && conflict(*second)) {
          return std::pair(*first, *second);
        }
      }
    }
    return std::nullopt;
  });
}

std::vector<std::int32_t> order_by(const PackProblem& problem, std::span<const double> keys) {
  std::vector<std::int32_t> order = by_size_descending(problem);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return keys[static_cast<std::size_t>(a)] > keys[static_cast<std::size_t>(b)];
  });
  return order;
}

std::vector<std::int32_t> by_size_descending(const PackProblem& problem) {
  std::vector<std::int32_t> order(problem.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const auto x = static_cast<std::size_t>(a);
    const auto y = static_cast<std::size_t>(b);
    if (problem.sizes[x] != problem.sizes[y]) return problem.sizes[x] > problem.sizes[y];
    return problem.starts[x] < problem.starts[y];
  });
  return order;
}

namespace {

/// All placed buffers by offset, and a test. Walking the whole list costs less than sorting the
/// conflicts anew for every buffer, where they are many.
template <class Test>
class PlacedList {
 public:
  explicit PlacedList(Test test) : test_(std::move(test)) {}

  void put(std::int32_t id, const AddressRange& range) {
    const auto lower = [](const Entry& a, const Entry& b) {
      return a.range.begin != b.range.begin ? a.range.begin < b.range.begin : a.id < b.id;
    };
    const Entry entry{range, id};
    list_.insert(std::upper_bound(list_.begin(), list_.end(), entry, lower), entry);
  }

  template <class Visit>
  void for_each_conflict(std::int32_t id, Visit&& visit) {
    test_.focus(static_cast<std::size_t>(id));
    for (const Entry& entry : list_) {
      if (test_(entry.id) && !visit(entry.range)) return;
    }
  }

 private:
  struct Entry {
    AddressRange range;
    std::int32_t id = 0;
  };
  Test test_;
  std::vector<Entry> list_;
};

/// The conflicts of a graph with few of them.
class PlacedNeighbours {
 public:
  explicit PlacedNeighbours(const PackProblem& problem)
      : problem_(problem), places_(problem.sizes.size(), kNowhere) {}

  void put(std::int32_t id, const AddressRange& range) {
    places_[static_cast<std::size_t>(id)] = range;
  }

  template <class Visit>
  void for_each_conflict(std::int32_t id, Visit&& visit) {
    found_.clear();
    for (const std::int32_t other : problem_.conflicts(static_cast<std::size_t>(id))) {
      const AddressRange& place = places_[static_cast<std::size_t>(other)];
      if (place.begin >= 0) found_.push_back(place);
    }
    std::sort(found_.begin(), found_.end(),
              [](const AddressRange& a, const AddressRange& b) { return a.begin < b.begin; });
    for (const AddressRange& place : found_) {
      if (!visit(place)) return;
    }
  }

 private:
  static constexpr AddressRange kNowhere{-1, -1};
  const PackProblem& problem_;
  std::vector<AddressRange> places_;
  std::vector<AddressRange> found_;
};

/// So few that sorting them costs less than a walk over everything.
bool has_few_conflicts(const PackProblem& problem) {
  constexpr double kFew = 1.0 / 32;
  const auto n = static_cast<double>(problem.sizes.size());
  return problem.has_graph() && static_cast<double>(problem.neighbours.size()) < kFew * n * n;
}

}  // namespace

Packing place_in_order(const PackProblem& problem, std::span<const std::int32_t> order,
                       bool choose_smallest_hole) {
  if (!problem.holds.empty()) return place_holds_in_order(problem, order, choose_smallest_hole);
  if (has_few_conflicts(problem)) {
    return place_among(problem, order, choose_smallest_hole, PlacedNeighbours(problem));
  }
  return with_test(problem, [&](auto conflict) {
    return place_among(problem, order, choose_smallest_hole, PlacedList(std::move(conflict)));
  });
}

}  // namespace tidepool
