#include "planners/tide/tide.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

#include "base/random.h"
#include "planners/autoswap/autoswap.h"
#include "planners/registry.h"
#include "planners/tide/tide_load.h"
#include "planners/toolkit/load_limit.h"

namespace tidepool {
namespace {

/// One call of the planner. See Note [Tide].
class TideSearch {
 public:
  TideSearch(PlannerContext& context, Lowered first)
      : context_(context),
        budget_(context.budget()),
        allowance_(context.allowance()),
        best_(std::move(first)),
        load_(context.lowering(), context.algorithms(context.lowering().program()),
              allowance_.repeats() ? 1 : 0) {
    load_.add_seed(best_.strategy);
    for (std::size_t i = 1; i < load_.threads(); ++i) {
      others_.emplace_back(context.lowering().program(), context.machine());
    }
  }

  void run() {
    constexpr Bytes kSteps = 512;
    LoadLimit limit(budget_.device, kSteps);
    for (std::uint64_t round = 0; !allowance_.used_up(); ++round) {
      if (stall() <= best_.compute_time / kNegligible || context_.stopped()) break;
      LoadSearchOptions searching{hash_combine(context_.options().seed, round),
                                  allowance_.slice(kSearchShare), context_.options().stop};
      if (round > 0) {
        searching.compact = true;
        searching.allowance = allowance_.slice(kCompactShare);
        searching.tolerated_stall = tolerated_stall();
      }
      const bool found = load_.run(limit.bytes(), searching);
      allowance_.spend(load_.spent());
      if (!found) break;
      Bytes excess = place_found(limit.bytes(), searching.seed, kPackingShare);
      if (excess > 0 && excess < budget_.device / kAlmost && !allowance_.repeats()) {
        excess = place_found(limit.bytes(), hash_combine(searching.seed, round), 2 * kPackingShare);
      }
      limit.follow(excess);
      context_.show_progress(allowance_, fmt::format("tide: {} of stalls", format_time(stall())));
    }
  }

  Lowered& best() { return best_; }
  [[nodiscard]] std::string note() const {
    return fmt::format("best from {}; {} evaluations", origin_, load_.evaluations());
  }

 private:
  /// Shares of the allowance that a round takes at most: the first for states, the others for
  /// states, and each for addresses.
  static constexpr double kSearchShare = 1.0 / 10;
  static constexpr double kCompactShare = 1.0 / 20;
  static constexpr double kPackingShare = 1.0 / 12;
  /// Addresses that exceed the budget by less than this part of it get another try, of twice the
  /// time.
  static constexpr int kAlmost = 200;

  /// Stalls of this part of the compute time are no reason to move more bytes: on devices whose
  /// copies take memory bandwidth from kernels that costs more than it saves.
  static constexpr int kNegligible = 2000;

  [[nodiscard]] Nanos stall() const { return best_.iteration_time - best_.compute_time; }

  /// Less than this is not worth the time that states for other limits and addresses need.
  [[nodiscard]] Nanos tolerated_stall() const {
    constexpr int kParts = 1250;
    return std::min(best_.compute_time / kParts, stall() / 2);
  }

  struct State {
    Strategy strategy;
    Nanos time{};
  };
  /// What the threads that place share.
  struct Placing {
    Bytes limit = 0;
    std::uint64_t seed = 0;
    Nanos packing_time{};
    Nanos tolerated{};
    std::vector<State> states;
    std::mutex mutex;  ///< of best_, origin_ and least_excess
    std::atomic<bool> placed{false};
    std::optional<Bytes> least_excess;
  };

  /// Lowers the states found under `limit` that are faster than the best, one on each thread.
  /// Returns by how much the addresses of the closest among the fastest exceed the budget when
  /// nothing has to wait for them; 0 also where nothing is faster.
  Bytes place_found(Bytes limit, std::uint64_t seed, double share) {
    Placing p;
    p.limit = limit;
    p.seed = seed;
    p.tolerated = tolerated_stall();
    p.packing_time = std::chrono::duration_cast<Nanos>(
        std::min(allowance_.slice(share).time_left(), allowance_.time_left()));
    for (std::size_t i = 0; i < load_.found() && p.states.size() < load_.threads(); ++i) {
      if (load_.iteration_time(i) >= best_.iteration_time) break;
      p.states.push_back({load_.strategy(i), load_.iteration_time(i)});
    }
    if (p.states.empty()) return 0;
    // Another seed may find addresses where one does not.
    for (std::size_t i = 0; p.states.size() < load_.threads(); ++i) {
      p.states.push_back(p.states[i]);
    }
    load_.pool().each(p.states.size(), [&](std::size_t i) { place_one(p, i); });
    allowance_.spend(static_cast<std::int64_t>(p.states.size()));
    return p.least_excess.value_or(0);
  }

  void place_one(Placing& p, std::size_t i) {
    Lowering& lowering = i == 0 ? context_.lowering() : others_[i - 1];
    const Nanos as_fast = p.states.front().time + p.tolerated;
    const State& state = p.states[i];
    LowerOptions placing;
    placing.attempts = 1;
    placing.load_limit = p.limit;
    placing.seed = hash_combine(p.seed, i);
    placing.stop = [&] { return p.placed || context_.stopped(); };
    placing.lead = longest_lead(lowering, state, p.limit);
    placing.packing_time = p.packing_time;
    {
      const std::scoped_lock lock(p.mutex);
      placing.faster_than = best_.iteration_time;
    }
    Trial trial = place(lowering, state.strategy, budget_, placing);
    const std::scoped_lock lock(p.mutex);
    if (trial.needed > 0 && state.time <= as_fast) {
      const Bytes excess = std::max<Bytes>(trial.excess(budget_), 0);
      p.least_excess = std::min(p.least_excess.value_or(excess), excess);
    }
    if (!trial.lowered || trial.lowered->iteration_time >= best_.iteration_time) return;
    best_ = std::move(*trial.lowered);
    origin_ = fmt::format("the search under a load of {}", format_bytes(p.limit));
    if (best_.iteration_time <= p.states.front().time) p.placed = true;
  }

  /// The longest lead of copies in that costs no time: it forgives the latest copies. On a real
  /// link, plans with short leads were some percent slower than predicted.
  [[nodiscard]] Nanos longest_lead(Lowering& lowering, const State& state, Bytes limit) const {
    for (const Nanos lead : {Nanos::max(), load_.compute_time() / 8, load_.compute_time() / 80}) {
      const Evaluation e =
          lowering.evaluator().evaluate(state.strategy, {limit, true, lead, state.time});
      if (e.feasible && e.iteration_time <= state.time) return lead;
    }
    return load_.lead();
  }

  PlannerContext& context_;
  const Budget& budget_;
  Allowance allowance_;
  Lowered best_;
  std::string origin_ = "autoswap";
  LoadSearch load_;
  std::deque<Lowering> others_;  ///< for the other threads
};

class Tide : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "tide"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    auto first = make_autoswap()->plan(context);
    if (!first) return first;
    if (Strategy* strategy = std::get_if<Strategy>(&first->choice)) {
      if (!context.options().may.swap) return first;
      auto lowered = context.lowering().lower(*strategy, context.budget());
      if (!lowered) return fail(lowered.error());
      first->choice = std::move(*lowered);
    }
    TideSearch search(context, std::get<Lowered>(std::move(first->choice)));
    search.run();
    return PlannerOutput{std::move(search.best()), {search.note()}};
  }
};

}  // namespace

std::unique_ptr<Planner> make_tide() { return std::make_unique<Tide>(); }

PlannerInfo tide_planner() {
  return {.name = "tide",
          .description = "swaps by search, from what autoswap finds",
          .make = make_tide,
          .starts_from = "autoswap"};
}

}  // namespace tidepool
