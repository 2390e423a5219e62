#include "pack/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <numeric>

#include "pack/branch_and_bound.h"
#include "pack/cliques.h"
#include "pack/cycle_sweep.h"
#include "pack/ejection_search.h"
#include "pack/greedy_orders.h"
#include "pack/holds.h"
#include "pack/squeaky_wheel.h"
#include "pack/sweep.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;
using Key = BranchOrder::Key;

/// Duration, area and load in the orders of MiniMalloc (ASPLOS 2023, section 5.6), then three of
/// ours.
constexpr std::array<std::array<Key, 3>, 6> kBranchOrders{{
    {Key::load, Key::duration, Key::area},
    {Key::duration, Key::area, Key::load},
    {Key::load, Key::area, Key::duration},
    {Key::area, Key::load, Key::duration},
    {Key::conflicts, Key::area, Key::load},
    {Key::failures, Key::load, Key::area},
}};
/// The exact search keeps a conflict graph and looks at all buffers in every node.
constexpr std::size_t kMostForExact = 4000;
/// The orders worth trying above the lower bound.
constexpr std::array<std::size_t, 3> kOrdersAbove{0, 1, 5};
/// A squeaky wheel that has not found a much better packing by then starts again.
constexpr int kSqueaks = 10;
/// Nodes of the first round, for each buffer: enough to place all and to go wrong a few times.
constexpr std::int64_t kFirstNodesPerBuffer = 16;

/// Ejections in each try of the first round. With a target, which is above the bound more often
/// than not, they find more than the exact search does, and go first.
constexpr std::int64_t kFirstEjections = 1'000;
constexpr std::int64_t kFirstEjectionsToTarget = 10'000;

constexpr Bytes kUnfinished = std::numeric_limits<Bytes>::max();  ///< as a footprint

class PackSearch {
 public:
  /// From `start` on.
  PackSearch(PackProblem problem, const SearchOptions& options, Clock::time_point start)
      : problem_(std::move(problem)),
        options_(options),
        start_(start),
        stop_([this] { return out_of_time(); }) {}

  SearchResult run() {
    greedy();
    if (result_.found_by.empty()) {
      result_.packing.footprint = kUnfinished;
      return std::move(result_);
    }
    const bool enough = options_.target > 0 && good_enough();
    if (!enough) result_.lower_bound = clique_bound(problem_, stop_);
    Bytes divisor = 0;
    for (const Bytes size : problem_.sizes) divisor = std::gcd(divisor, size);
    granule_ = std::max<Bytes>(divisor, 1);
    std::int64_t nodes = kFirstNodesPerBuffer * static_cast<std::int64_t>(problem_.sizes.size());
    for (int round = 0; round < options_.rounds && !over(); ++round) {
      squeaks(round);
      if (options_.target == 0) exact(nodes);
      ejections(round);
      if (options_.target > 0) exact(nodes);
      if (nodes < std::numeric_limits<std::int64_t>::max() / 8) nodes *= 2;
    }
    result_.proven_optimal = optimal();
    result_.time = Clock::now() - start_;
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool optimal() const { return result_.packing.footprint == result_.lower_bound; }
  /// Less than this is impossible, or not asked for.
  [[nodiscard]] Bytes goal() const {
    return std::max(result_.lower_bound, whole_granules(options_.target));
  }
  /// Offsets below a capacity that is a sum of sizes are sums of sizes, from the ground as from the
  /// ceiling: what is aligned stays so.
  [[nodiscard]] Bytes whole_granules(Bytes bytes) const { return bytes - bytes % granule_; }
  [[nodiscard]] bool good_enough() const {
    return optimal() || result_.packing.footprint <= options_.target;
  }

  /// Nothing more to find.
  bool over() {
    const bool hopeless = options_.target > 0 && result_.lower_bound > options_.target;
    return hopeless || good_enough() || out_of_time();
  }

  bool out_of_time() {
    const Nanos elapsed = Clock::now() - start_;
    if (options_.progress != nullptr && elapsed - shown_ > kShowEvery) {
      shown_ = elapsed;
      options_.progress->update(
          to_seconds(elapsed) / std::max(1e-9, to_seconds(options_.time_limit)),
          fmt::format("{} B, {:.5f} of the lower bound", result_.packing.footprint, ratio()));
    }
    return elapsed >= options_.time_limit || options_.stop.requested();
  }
  [[nodiscard]] double ratio() const {
    return static_cast<double>(result_.packing.footprint) /
           static_cast<double>(std::max<Bytes>(result_.lower_bound, 1));
  }

  void take(Packing packing, std::string_view method) {
    if (packing.footprint == kUnfinished) return;
    if (packing.footprint >= result_.packing.footprint && !result_.found_by.empty()) return;
    result_.packing = std::move(packing);
    result_.found_by = method;
  }

  /// However little time there is, one packing is finished: the first order of a conflict graph,
  /// which costs no more than its edges, or of many lifetimes a sweep where no order gets done.
  void greedy() {
    const bool can_sweep = !problem_.lifetimes.empty() && problem_.fixed.empty();
    for (const Packer& packer : packers()) {
      const bool in_any_case = !can_sweep && result_.found_by.empty();
      const Stop unless_none = options_.may_have_none ? options_.stop : Stop();
      problem_.stop = in_any_case ? unless_none : stop_;
      take(packer.pack(problem_), packer.name);
      if (out_of_time()) break;
    }
    problem_.stop = stop_;
    if (result_.found_by.empty() && can_sweep) take(pack_by_sweep(problem_), "sweep");
  }

  void squeak_from(std::vector<std::int32_t> order, std::uint64_t seed) {
    Packing best = result_.packing;
    if (squeak(problem_, order, goal(), seed, kSqueaks, stop_, best)) {
      take(std::move(best), "squeaky wheel");
    }
  }

  void squeaks(int round) {
    if (by_load_.empty()) {
      by_load_ = order_by(problem_, load_keys(problem_));
      by_size_ = by_size_descending(problem_);
    }
    // Four starts from each; the exact search, where it applies, is the better use of time.
    for (std::uint64_t i = 0; i < (exact_applies() ? 2 : 8); ++i) {
      if (good_enough() || out_of_time()) return;
      squeak_from(i % 2 == 0 ? by_load_ : by_size_,
                  hash_combine(options_.seed + i, static_cast<std::uint64_t>(round)));
    }
  }

  void ejections(int round) {
    if (good_enough() || out_of_time()) return;
    if (!ejection_) ejection_ = std::make_unique<EjectionSearch>(problem_);
    const std::int64_t first = options_.target > 0 ? kFirstEjectionsToTarget : kFirstEjections;
    const std::int64_t steps = first << std::min(2 * round, 24);
    Bytes step = result_.packing.footprint - goal();
    for (std::uint64_t i = 0; step >= granule_ && !good_enough() && !out_of_time(); ++i) {
      const Bytes target = std::max(goal(), whole_granules(result_.packing.footprint - step));
      const std::uint64_t seed =
          hash_combine(options_.seed + i, static_cast<std::uint64_t>(round) + 1);
      if (ejection_->fit(target, result_.packing, seed, steps, stop_)) {
        take(ejection_->packing(), "ejection");
      } else {
        step /= 2;
      }
    }
  }

  [[nodiscard]] bool exact_applies() const {
    return problem_.sizes.size() <= kMostForExact &&
           std::all_of(problem_.fixed.begin(), problem_.fixed.end(),
                       [](Bytes offset) { return offset < 0; }) &&
           std::all_of(problem_.sizes.begin(), problem_.sizes.end(),
                       [](Bytes size) { return size > 0; });
  }

  /// At the goal; where that is the lower bound, also by bisection between what was not found and
  /// the best packing.
  void exact(std::int64_t nodes) {
    if (!exact_applies() || good_enough() || out_of_time()) return;
    if (!exact_) exact_ = std::make_unique<BranchAndBound>(problem_);
    if (goal() > result_.lower_bound) {
      exact_at(goal(), nodes);
      return;
    }
    Bytes failed = result_.lower_bound - granule_;
    Bytes capacity = result_.lower_bound;
    while (!good_enough() && !out_of_time() && capacity < result_.packing.footprint) {
      if (!exact_at(capacity, nodes)) failed = capacity;
      const Bytes steps = (result_.packing.footprint - failed) / granule_;
      if (steps < 2) break;
      capacity = std::max(result_.lower_bound, failed + steps / 2 * granule_);
    }
    probe(nodes / 4);
  }

  /// A search that fails at one capacity may succeed at a smaller one: tries some between.
  void probe(std::int64_t nodes) {
    constexpr Bytes kProbes = 24;
    const Bytes width = (result_.packing.footprint - result_.lower_bound) / granule_;
    for (Bytes k = 1; k < kProbes && !good_enough() && !out_of_time(); ++k) {
      const Bytes capacity = result_.lower_bound + width * k / kProbes * granule_;
      if (capacity <= result_.lower_bound) continue;
      if (capacity >= result_.packing.footprint) return;
      if (exact_at(capacity, nodes)) return;
    }
  }

  /// True when a packing was found.
  bool exact_at(Bytes capacity, std::int64_t nodes) {
    for (std::size_t i = 0; i < kBranchOrders.size(); ++i) {
      if (capacity > result_.lower_bound &&
          !std::count(kOrdersAbove.begin(), kOrdersAbove.end(), i)) {
        continue;
      }
      const std::array<Key, 3>& keys = kBranchOrders[i];
      const bool shuffled = keys[0] == Key::failures;
      // The first order is the most successful one; a proof ends everything.
      const std::int64_t limit = i == 0 && capacity == result_.lower_bound ? 4 * nodes : nodes;
      const std::uint64_t shuffle =
          shuffled ? hash_combine(options_.seed, static_cast<std::uint64_t>(++shuffles_)) : 0;
      switch (exact_->fit(capacity, {keys, shuffle}, limit, stop_)) {
        case Answer::found:
          take(exact_->packing(), "exact search");
          return true;
        case Answer::impossible:
          // Footprints are sums of sizes.
          result_.lower_bound = std::max(result_.lower_bound, capacity + granule_);
          return false;
        case Answer::gave_up:
          if (out_of_time()) return false;
      }
    }
    return false;
  }

  static constexpr Nanos kShowEvery = std::chrono::milliseconds(100);

  PackProblem problem_;
  const SearchOptions& options_;
  const Clock::time_point start_;
  const Stop stop_;
  Nanos shown_{0};
  SearchResult result_;
  Bytes granule_ = 1;  ///< of all sizes
  std::vector<std::int32_t> by_load_;
  std::vector<std::int32_t> by_size_;
  std::unique_ptr<BranchAndBound> exact_;
  std::unique_ptr<EjectionSearch> ejection_;
  std::int64_t shuffles_ = 0;
};

/// What conflicts with every other buffer lies on the ground in some best packing: cut its strip of
/// addresses out of any packing, nothing else is in it, and put it below. The search is for the
/// rest.
class Ground {
 public:
  explicit Ground(const PackProblem& problem) : problem_(problem), place_(problem.sizes.size()) {
    const std::size_t n = problem.sizes.size();
    if (std::any_of(problem.fixed.begin(), problem.fixed.end(), [](Bytes o) { return o >= 0; })) {
      for (std::size_t i = 0; i < n; ++i) rest_.push_back(i);
      return;
    }
    std::int64_t first_end = std::numeric_limits<std::int64_t>::max();
    std::int64_t last_begin = std::numeric_limits<std::int64_t>::min();
    for (const Lifetime& life : problem.lifetimes) {
      first_end = std::min(first_end, life.upper);
      last_begin = std::max(last_begin, life.lower);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const bool everywhere =
          problem.lifetimes.empty()
              ? problem.conflicts(i).size() + 1 == n
              : problem.lifetimes[i].lower < first_end && problem.lifetimes[i].upper > last_begin;
      if (!everywhere) {
        place_[i] = static_cast<Bytes>(rest_.size());
        rest_.push_back(i);
        continue;
      }
      place_[i] = height_;
      height_ += problem.sizes[i];
    }
  }

  [[nodiscard]] Bytes height() const { return height_; }
  [[nodiscard]] bool bare() const { return height_ == 0 || rest_.empty(); }

  /// The problem above the ground.
  [[nodiscard]] PackProblem rest() const {
    PackProblem rest;
    if (problem_.lifetimes.empty()) rest.neighbour_start.push_back(0);
    for (const std::size_t i : rest_) {
      rest.sizes.push_back(problem_.sizes[i]);
      rest.starts.push_back(problem_.starts[i]);
      if (!problem_.lifetimes.empty()) {
        rest.lifetimes.push_back(problem_.lifetimes[i]);
        continue;
      }
      for (const std::int32_t other : problem_.conflicts(i)) {
        const auto o = static_cast<std::size_t>(other);
        if (!is_rest(o)) continue;
        rest.neighbours.push_back(static_cast<std::int32_t>(place_[o]));
      }
      rest.neighbour_start.push_back(static_cast<std::int32_t>(rest.neighbours.size()));
    }
    return rest;
  }

  /// A packing of the rest as one of the whole.
  [[nodiscard]] Packing raised(const Packing& rest) const {
    Packing packing;
    packing.offsets = place_;
    for (std::size_t k = 0; k < rest_.size(); ++k) {
      packing.offsets[rest_[k]] = height_ + rest.offsets[k];
    }
    packing.footprint = height_ + rest.footprint;
    return packing;
  }

 private:
  [[nodiscard]] bool is_rest(std::size_t i) const {
    const auto k = static_cast<std::size_t>(place_[i]);
    return k < rest_.size() && rest_[k] == i;
  }

  const PackProblem& problem_;
  std::vector<Bytes> place_;  ///< offset on the ground, or position in rest_
  std::vector<std::size_t> rest_;
  Bytes height_ = 0;
};

/// Until the target or the lower bound is met: what does better than the result so far becomes it.
void try_packers(std::span<const Packer> tried, Clock::time_point start, PackProblem problem,
                 const SearchOptions& options, SearchResult& result) {
  problem.stop = [&] {
    return Clock::now() - start >= options.time_limit || options.stop.requested();
  };
  for (const Packer& packer : tried) {
    if (result.packing.footprint <= std::max(options.target, result.lower_bound)) break;
    Packing packing = packer.pack(problem);
    if (packing.footprint >= result.packing.footprint) continue;
    result.packing = std::move(packing);
    result.found_by = packer.name;
  }
  result.proven_optimal = result.packing.footprint == result.lower_bound;
  result.time = Clock::now() - start;
}

SearchResult search_from(Clock::time_point start, PackProblem problem,
                         const SearchOptions& options) {
  const Ground ground(problem);
  if (ground.bare()) return PackSearch(std::move(problem), options, start).run();
  SearchOptions above = options;
  if (options.target > 0) above.target = std::max<Bytes>(options.target - ground.height(), 1);
  SearchResult result = PackSearch(ground.rest(), above, start).run();
  if (result.packing.footprint == kUnfinished) return result;
  result.packing = ground.raised(result.packing);
  result.lower_bound += ground.height();
  // Greedy orders of the whole problem may do better than those of the rest.
  try_packers(packers(), start, problem, options, result);
  return result;
}

/// Holds that conflict too often for a graph: SmartPool's orders, and a sweep where there is no
/// time for them.
SearchResult pack_once(Clock::time_point start, PackProblem problem, const SearchOptions& options) {
  SearchResult result;
  result.lower_bound = held_at_once(problem);
  result.packing = pack_by_cycle_sweep(problem);
  result.found_by = "sweep";
  try_packers(smartpool_packers(), start, std::move(problem), options, result);
  return result;
}

}  // namespace

SearchResult search_packing(const PackProblem& problem, const SearchOptions& options) {
  constexpr std::int64_t kMostPairs = 1 << 24;  // 128 MiB as a graph
  const auto start = Clock::now();
  if (problem.holds.empty()) return search_from(start, problem, options);
  if (most_conflicts(problem.holds) > kMostPairs) return pack_once(start, problem, options);
  if (!options.may_have_none) return search_from(start, hold_graph(problem), options);
  auto graph = hold_graph(problem, options.stop);
  if (graph) return search_from(start, std::move(*graph), options);
  SearchResult none;
  none.packing.footprint = kUnfinished;
  return none;
}

}  // namespace tidepool
