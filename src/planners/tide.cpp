#include "planners/tide.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

#include "base/random.h"
#include "planners/autoswap.h"
#include "planners/tide_load.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

/// The limit on the load from round to round. What a limit gives differs from try to try, so it
/// goes up and down for ever: down where addresses exceed the budget, twice as far up where they do
/// not, which makes one round in three succeed. Steps get smaller at every turn.
class LoadLimit {
 public:
  explicit LoadLimit(Bytes budget) : budget_(budget), bytes_(budget), step_(budget / 64) {}
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  void move(Bytes excess) {
    const Bytes least = budget_ / 512 + 1;
    const bool down = excess > 0;
    if (down != down_) step_ = std::max(step_ / 2, least);
    down_ = down;
    const Bytes by = down ? std::clamp(excess / 2, std::min(least, step_), step_) : 2 * step_;
    bytes_ = std::clamp(down ? bytes_ - by : bytes_ + by, Bytes{1}, budget_);
  }

 private:
  Bytes budget_;
  Bytes bytes_;
  Bytes step_;
  bool down_ = true;
};

/// One call of the planner. See Note [Tide].
class TideSearch {
 public:
  TideSearch(Lowering& lowering, const Budget& budget, const PlannerOptions& options, Lowered first)
      : lowering_(lowering),
        budget_(budget),
        options_(options),
        best_(std::move(first)),
        load_(lowering, choose_algorithms(lowering.program(), options.algorithms)) {
    load_.add_seed(best_.strategy);
    for (std::size_t i = 1; i < load_.threads(); ++i) {
      others_.emplace_back(lowering.program(), lowering.machine());
    }
  }

  void run(Clock::time_point start) {
    const auto deadline = start + options_.time_limit;
    LoadLimit limit(budget_.device);
    for (std::uint64_t round = 0; Clock::now() < deadline; ++round) {
      if (stall() <= Nanos{0} || cancelled()) break;
      const auto now = Clock::now();
      LoadSearchOptions searching;
      searching.seed = hash_combine(options_.seed, round);
      searching.deadline = std::min(deadline, now + options_.time_limit / kSearchParts);
      searching.cancelled = options_.cancelled;
      searching.compact = round > 0;
      if (searching.compact) searching.tolerated_stall = tolerated_stall();
      if (!load_.run(limit.bytes(), searching)) break;
      const auto left = std::max<Clock::duration>(deadline - Clock::now(), {});
      limit.move(place(limit.bytes(), searching.seed,
                       std::min<Clock::duration>(left, options_.time_limit / kPackingParts)));
      show_progress(start);
    }
  }

  Lowered& best() { return best_; }
  [[nodiscard]] std::string note() const {
    return fmt::format("best from {}; {} evaluations", origin_, load_.evaluations());
  }

 private:
  /// Parts of the time limit that a round takes at most: for states, and for their addresses.
  static constexpr int kSearchParts = 6;
  static constexpr int kPackingParts = 12;

  [[nodiscard]] Nanos stall() const { return best_.iteration_time - best_.compute_time; }
  [[nodiscard]] bool cancelled() const { return options_.cancelled && options_.cancelled(); }

  /// Less than this is not worth the time that states for other limits and addresses need.
  [[nodiscard]] Nanos tolerated_stall() const {
    constexpr int kParts = 2000;
    return std::min(best_.compute_time / kParts, stall() / 2);
  }

  /// Lowers the states found under `limit` that are faster than the best, one on each thread.
  /// Returns by how much the addresses of the closest exceed the budget when nothing has to wait
  /// for them; 0 also where nothing is faster.
  Bytes place(Bytes limit, std::uint64_t seed, Clock::duration packing_time) {
    struct State {
      Strategy strategy;
      Nanos time{};
    };
    std::vector<State> states;
    for (std::size_t i = 0; i < load_.found() && states.size() < load_.threads(); ++i) {
      if (load_.iteration_time(i) >= best_.iteration_time) break;
      states.push_back({load_.strategy(i), load_.iteration_time(i)});
    }
    if (states.empty()) return 0;
    std::mutex mutex;
    std::atomic<bool> placed{false};
    Bytes least_excess = budget_.device;
    const auto place_one = [&](std::size_t i) {
      Lowering& lowering = i == 0 ? lowering_ : others_[i - 1];
      LowerOptions placing;
      placing.allow_streaming = false;
      placing.attempts = 1;
      placing.load_limit = limit;
      placing.seed = hash_combine(seed, i);
      placing.cancelled = [&] { return placed || cancelled(); };
      placing.lead = longest_lead(lowering, states[i].strategy, limit, states[i].time);
      placing.packing_time = packing_time;
      {
        const std::scoped_lock lock(mutex);
        placing.faster_than = best_.iteration_time;
      }
      auto lowered = lowering.lower(states[i].strategy, budget_, placing);
      const std::scoped_lock lock(mutex);
      least_excess =
          std::min(least_excess, std::max<Bytes>(lowering.free_footprint() - budget_.device, 0));
      if (!lowered || lowered->iteration_time >= best_.iteration_time) return;
      best_ = std::move(*lowered);
      origin_ = fmt::format("the search under a load of {}", format_bytes(limit));
      if (best_.iteration_time <= states.front().time) placed = true;
    };
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < states.size(); ++i) threads.emplace_back(place_one, i);
    place_one(0);
    threads.clear();
    return least_excess;
  }

  /// The longest lead of copies in that costs no time: it forgives the latest copies. On a real
  /// link, plans with short leads were some percent slower than predicted.
  [[nodiscard]] Nanos longest_lead(Lowering& lowering, const Strategy& strategy, Bytes limit,
                                   Nanos time) const {
    for (const Nanos lead : {Nanos::max(), best_.compute_time / 8, best_.compute_time / 80}) {
      const Evaluation e = lowering.evaluator().evaluate(strategy, {limit, true, lead, time});
      if (e.feasible && e.iteration_time <= time) return lead;
    }
    return load_.lead();
  }

  void show_progress(Clock::time_point start) {
    if (options_.progress == nullptr) return;
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    options_.progress->update(std::min(1.0, elapsed / to_seconds(options_.time_limit)),
                              fmt::format("tide: {} of stalls", format_time(stall())));
  }

  Lowering& lowering_;
  const Budget& budget_;
  const PlannerOptions& options_;
  Lowered best_;
  std::string origin_ = "autoswap";
  LoadSearch load_;
  std::deque<Lowering> others_;  ///< for the other threads
};

class Tide : public Planner {
 public:
  Result<PlannerOutput> plan(Workload& workload, Lowering& lowering, const Budget& budget,
                             const PlannerOptions& options) override {
    const auto start = Clock::now();
    auto other = make_autoswap()->plan(workload, lowering, budget, options);
    if (!other) return fail(other.error());
    if (!other->lowered) {
      auto lowered = lowering.lower(other->strategy, budget);
      if (!lowered) return fail(lowered.error());
      other->lowered = std::move(*lowered);
    }
    TideSearch search(lowering, budget, options, std::move(*other->lowered));
    search.run(start);
    PlannerOutput output;
    output.notes.push_back(search.note());
    output.lowered = std::move(search.best());
    output.lowered->plan.planner = "tide";
    output.lowered->strategy.planner = "tide";
    output.strategy = output.lowered->strategy;
    return output;
  }
};

}  // namespace

std::unique_ptr<Planner> make_tide() { return std::make_unique<Tide>(); }

}  // namespace tidepool
