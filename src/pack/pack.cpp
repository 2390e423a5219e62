#include "pack/pack.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "pack/best_fit.h"
#include "pack/first_fit.h"
#include "pack/greedy_orders.h"
#include "pack/hold_order.h"

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
  hold.until.fill(std::numeric_limits<std::int32_t>::max());
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

template <class Test>
Packing place(const PackProblem& problem, std::span<const std::int32_t> order,
              bool choose_smallest_hole, Test conflict) {
  constexpr Bytes kNone = -1;
  constexpr std::size_t kBetweenQuestions = 64;  // at 200,000 buffers a few milliseconds
  Packing packing;
  packing.offsets.assign(problem.sizes.size(), kNone);
  // All placed buffers by offset. Walking the whole list costs less than sorting the neighbours
  // anew for every buffer.
  std::vector<std::pair<Bytes, std::int32_t>> placed;
  placed.reserve(order.size());
  const auto put = [&](std::int32_t id, Bytes offset) {
    const auto buffer = static_cast<std::size_t>(id);
    packing.offsets[buffer] = offset;
    packing.footprint = std::max(packing.footprint, offset + problem.sizes[buffer]);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), std::pair(offset, id)),
                  std::pair(offset, id));
  };
  for (std::size_t i = 0; i < problem.fixed.size(); ++i) {
    if (problem.fixed[i] >= 0) put(static_cast<std::int32_t>(i), problem.fixed[i]);
  }
  for (const std::int32_t id : order) {
    const auto buffer = static_cast<std::size_t>(id);
    if (packing.offsets[buffer] != kNone) continue;
    if (placed.size() % kBetweenQuestions == 0 && problem.stop.requested()) {
      packing.footprint = std::numeric_limits<Bytes>::max();
      break;
    }
    conflict.focus(buffer);
    const Bytes size = problem.sizes[buffer];
    Bytes best = kNone;
    Bytes best_hole = std::numeric_limits<Bytes>::max();
    Bytes top = 0;
    for (const auto& [begin, other] : placed) {
      const auto o = static_cast<std::size_t>(other);
      if (!conflict(other)) continue;
      const Bytes hole = begin - top;
      if (hole >= size && hole < best_hole) {
        best = top;
        best_hole = hole;
        if (!choose_smallest_hole) break;
      }
      top = std::max(top, begin + problem.sizes[o]);
    }
    put(id, best == kNone ? top : best);
    if (packing.footprint > problem.give_up_above) break;
  }
  return packing;
}

}  // namespace

Packing place_in_order(const PackProblem& problem, std::span<const std::int32_t> order,
                       bool choose_smallest_hole) {
  if (!problem.holds.empty()) return place_holds_in_order(problem, order, choose_smallest_hole);
  return with_test(problem, [&](auto conflict) {
    return place(problem, order, choose_smallest_hole, std::move(conflict));
  });
}

}  // namespace tidepool
