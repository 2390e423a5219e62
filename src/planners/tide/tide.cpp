#include "planners/tide/tide.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "base/random.h"
#include "planners/autoswap/autoswap.h"
#include "planners/tide/tide_load.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

/// The limit on the load from round to round: down by most of what the addresses exceed the budget
/// by until they fit. Then, since what a limit gives differs from try to try, up and down for ever:
/// up by a part of the way to the budget, down by half the way to where they did fit.
class LoadLimit {
 public:
  explicit LoadLimit(Bytes budget) : budget_(budget), bytes_(budget) {}
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  void move(Bytes excess) {
    const Bytes least = budget_ / 512 + 1;
    if (excess == 0) {
      fits_ = bytes_;
      bytes_ += std::max(2 * least, (budget_ - bytes_) / 4);
    } else {
      const Bytes by = fits_ == 0 ? excess * 2 / 3 : std::min(excess, bytes_ - fits_) / 2;
      bytes_ -= std::max(least, by);
    }
    bytes_ = std::clamp(bytes_, Bytes{1}, budget_);
  }

 private:
  Bytes budget_;
  Bytes bytes_;
  Bytes fits_ = 0;  ///< the last limit with addresses
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
      if (stall() <= best_.compute_time / kNegligible || cancelled()) break;
      const auto now = Clock::now();
      LoadSearchOptions searching;
      searching.seed = hash_combine(options_.seed, round);
      searching.stop = options_.stop;
      searching.compact = round > 0;
      const int parts = searching.compact ? kCompactParts : kSearchParts;
      searching.deadline = std::min(deadline, now + options_.time_limit / parts);
      if (searching.compact) searching.tolerated_stall = tolerated_stall();
      if (!load_.run(limit.bytes(), searching)) break;
      const auto packing_time = [&](int share) {
        return std::clamp<Clock::duration>(options_.time_limit / share, {},
                                           std::max<Clock::duration>(deadline - Clock::now(), {}));
      };
      Bytes excess = place(limit.bytes(), searching.seed, packing_time(kPackingParts));
      if (excess > 0 && excess < budget_.device / kAlmost) {
        excess = place(limit.bytes(), hash_combine(searching.seed, round),
                       packing_time(kPackingParts / 2));
      }
      limit.move(excess);
      show_progress(start);
    }
  }

  Lowered& best() { return best_; }
  [[nodiscard]] std::string note() const {
    return fmt::format("best from {}; {} evaluations", origin_, load_.evaluations());
  }

 private:
  /// Parts of the time limit that a round takes at most: the first for states, the others for
  /// states, and each for addresses.
  static constexpr int kSearchParts = 10;
  static constexpr int kCompactParts = 20;
  static constexpr int kPackingParts = 12;
  /// Addresses that exceed the budget by less than this part of it get another try, of twice the
  /// time.
  static constexpr int kAlmost = 200;

  /// Stalls of this part of the compute time are no reason to move more bytes: on devices whose
  /// copies take memory bandwidth from kernels that costs more than it saves.
  static constexpr int kNegligible = 2000;

  [[nodiscard]] Nanos stall() const { return best_.iteration_time - best_.compute_time; }
  [[nodiscard]] bool cancelled() const { return options_.stop.requested(); }

  /// Less than this is not worth the time that states for other limits and addresses need.
  [[nodiscard]] Nanos tolerated_stall() const {
    constexpr int kParts = 1250;
    return std::min(best_.compute_time / kParts, stall() / 2);
  }

  /// Lowers the states found under `limit` that are faster than the best, one on each thread.
  /// Returns by how much the addresses of the closest among the fastest exceed the budget when
  /// nothing has to wait for them; 0 also where nothing is faster. The threads share `best_`.
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
    const Nanos as_fast = states.front().time + tolerated_stall();
    // Another seed may find addresses where one does not.
    for (std::size_t i = 0; states.size() < load_.threads(); ++i) states.push_back(states[i]);
    std::mutex mutex;
    std::atomic<bool> placed{false};
    std::optional<Bytes> least_excess;
    const auto place_one = [&](std::size_t i) {
      Lowering& lowering = i == 0 ? lowering_ : others_[i - 1];
      LowerOptions placing;
      placing.allow_streaming = false;
      placing.attempts = 1;
      placing.load_limit = limit;
      placing.seed = hash_combine(seed, i);
      placing.stop = [&] { return placed || cancelled(); };
      placing.lead = longest_lead(lowering, states[i].strategy, limit, states[i].time);
      placing.packing_time = packing_time;
      {
        const std::scoped_lock lock(mutex);
        placing.faster_than = best_.iteration_time;
      }
      auto lowered = lowering.lower(states[i].strategy, budget_, placing);
      const std::scoped_lock lock(mutex);
      const Bytes needed = lowering.free_footprint();  // 0: no addresses were looked for
      if (needed > 0 && states[i].time <= as_fast) {
        const Bytes excess = std::max<Bytes>(needed - budget_.device, 0);
        least_excess = std::min(least_excess.value_or(excess), excess);
      }
      if (!lowered || lowered->iteration_time >= best_.iteration_time) return;
      best_ = std::move(*lowered);
      origin_ = fmt::format("the search under a load of {}", format_bytes(limit));
      if (best_.iteration_time <= states.front().time) placed = true;
    };
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < states.size(); ++i) threads.emplace_back(place_one, i);
    place_one(0);
    threads.clear();
    return least_excess.value_or(0);
  }

  /// The longest lead of copies in that costs no time: it forgives the latest copies. On a real
  /// link, plans with short leads were some percent slower than predicted.
  [[nodiscard]] Nanos longest_lead(Lowering& lowering, const Strategy& strategy, Bytes limit,
                                   Nanos time) const {
    for (const Nanos lead : {Nanos::max(), load_.compute_time() / 8, load_.compute_time() / 80}) {
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
