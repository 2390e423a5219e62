#include "plan/pack/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <numeric>

#include "plan/pack/branch_and_bound.h"
#include "plan/pack/cliques.h"
#include "plan/pack/ejection_search.h"
#include "plan/pack/greedy_orders.h"
#include "plan/pack/squeaky_wheel.h"

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

class PackSearch {
 public:
  PackSearch(const PackProblem& problem, const SearchOptions& options)
      : problem_(problem), options_(options), stop_([this] { return out_of_time(); }) {}

  SearchResult run() {
    greedy();
    result_.lower_bound = clique_bound(problem_);
    if (options_.target > 0 && result_.lower_bound > options_.target) return std::move(result_);
    for (const Bytes size : problem_.sizes) granule_ = std::gcd(granule_, size);
    std::int64_t nodes = kFirstNodesPerBuffer * static_cast<std::int64_t>(problem_.sizes.size());
    for (int round = 0; round < options_.rounds && !good_enough() && !out_of_time(); ++round) {
      squeaks(round);
      exact(nodes);
      ejections(round);
      if (nodes < std::numeric_limits<std::int64_t>::max() / 8) nodes *= 2;
    }
    result_.proven_optimal = optimal();
    result_.time = Clock::now() - start_;
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool optimal() const { return result_.packing.footprint == result_.lower_bound; }
  [[nodiscard]] bool good_enough() const {
    return optimal() || result_.packing.footprint <= options_.target;
  }

  bool out_of_time() {
    const Nanos elapsed = Clock::now() - start_;
    if (options_.progress != nullptr && elapsed - shown_ > kShowEvery) {
      shown_ = elapsed;
      options_.progress->update(
          to_seconds(elapsed) / std::max(1e-9, to_seconds(options_.time_limit)),
          fmt::format("{} B, {:.5f} of the lower bound", result_.packing.footprint, ratio()));
    }
    return elapsed >= options_.time_limit || (options_.cancelled && options_.cancelled());
  }
  [[nodiscard]] double ratio() const {
    return static_cast<double>(result_.packing.footprint) /
           static_cast<double>(std::max<Bytes>(result_.lower_bound, 1));
  }

  void take(Packing packing, std::string_view method) {
    if (packing.footprint >= result_.packing.footprint && !result_.found_by.empty()) return;
    result_.packing = std::move(packing);
    result_.found_by = method;
  }

  void greedy() {
    for (const Packer& packer : packers()) {
      take(packer.pack(problem_), packer.name);
      if (out_of_time()) return;
    }
  }

  void squeak_from(std::vector<std::int32_t> order, std::uint64_t seed) {
    Packing best = result_.packing;
    if (squeak(problem_, order, result_.lower_bound, seed, kSqueaks, stop_, best)) {
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
    const std::int64_t steps = std::int64_t{1000} << std::min(2 * round, 24);
    Bytes step = result_.packing.footprint - result_.lower_bound;
    for (std::uint64_t i = 0; step >= granule_ && !good_enough() && !out_of_time(); ++i) {
      const Bytes target = std::max(result_.lower_bound, result_.packing.footprint - step);
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

  /// At the lower bound, then by bisection between what was not found and the best packing.
  void exact(std::int64_t nodes) {
    if (!exact_applies()) return;
    if (!exact_) exact_ = std::make_unique<BranchAndBound>(problem_);
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

  const PackProblem& problem_;
  const SearchOptions& options_;
  const Clock::time_point start_ = Clock::now();
  const std::function<bool()> stop_;
  Nanos shown_{0};
  SearchResult result_;
  Bytes granule_ = 0;  ///< of all sizes
  std::vector<std::int32_t> by_load_;
  std::vector<std::int32_t> by_size_;
  std::unique_ptr<BranchAndBound> exact_;
  std::unique_ptr<EjectionSearch> ejection_;
  std::int64_t shuffles_ = 0;
};

}  // namespace

SearchResult search_packing(const PackProblem& problem, const SearchOptions& options) {
  return PackSearch(problem, options).run();
}

}  // namespace tidepool
