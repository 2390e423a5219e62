// Addresses for what TideSearch has found.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

#include "base/random.h"
#include "planners/tide/tide_search.h"

namespace tidepool {
namespace {

using Clock = Allowance::Clock;

/// Never 0: what failed once has failed.
double effort(const PackingSearch& packing) {
  constexpr double kLeast = 0.01;
  return std::max(kLeast, packing.rounds + to_seconds(packing.time));
}

}  // namespace

/// What the threads that place share.
struct TideSearch::Placing {
  Bytes limit = 0;
  std::uint64_t seed = 0;
  PackingSearch packing;
  Nanos faster_than{};
  std::vector<State> states;
  std::atomic<bool> placed{false};
};

/// Grows as the search's rounds do, whatever the allowance, so that a larger one begins the same
/// way: where other states cost little it is short.
PackingSearch TideSearch::packing_search() {
  if (allowance_.repeats()) {
    // Rounds of that search count no evaluations: a few have to do.
    constexpr std::uint64_t kMostRounds = 6;
    const auto rounds = static_cast<int>(std::min(side_->round / kToTheBudget, kMostRounds));
    return {.rounds = to_the_budget() ? rounds : 0};
  }
  constexpr double kFirst = 0.1;
  constexpr double kLonger = 1.3;
  constexpr double kOfSearching = 2;
  constexpr double kLeast = 0.001;
  constexpr std::size_t kSmall = 150;  // ops; unet with more got worse by it
  const double grown = kFirst * std::pow(kLonger, static_cast<double>(side_->round));
  const bool small = context_.lowering().program().ops.size() <= kSmall;
  const double worth_it = std::max(kOfSearching * to_seconds(side_->searched), kLeast);
  const double time = std::min({grown, small ? worth_it : grown, 60.0});
  // The threads take turns at the states. Before any has had addresses there has to be another
  // round.
  const double of_the_rest = side_->placed ? 0.9 : 0.4;
  const double left = to_seconds(allowance_.time_left() - placing_);
  return {.time = from_seconds(std::clamp(of_the_rest * left / turns(kPlaced), 0.0, time))};
}

/// In which the threads have placed so many states.
int TideSearch::turns(std::size_t states) {
  const std::size_t threads = side_->load.pool().threads();
  return static_cast<int>((states + threads - 1) / threads);
}

/// Lowers the states found under `limit` that are faster than the best. Returns by how much the
/// addresses of the closest among the fastest exceed the budget when nothing has to wait for
/// them; 0 also where nothing is faster.
Bytes TideSearch::place_found(Bytes limit, std::uint64_t seed) {
  const Clock::time_point begun = Clock::now();
  Placing p;
  p.limit = limit;
  p.seed = seed;
  p.packing = packing_search();
  p.faster_than = best_.iteration_time;
  choose_states(p);
  if (p.states.empty()) return 0;
  ThreadPool& pool = side_->load.pool();
  // Another seed may find addresses where one does not.
  const bool again = !allowance_.repeats() && p.packing.wanted();
  for (std::size_t i = 0; again && p.states.size() < pool.threads(); ++i) {
    p.states.push_back(p.states[i]);
  }
  while (others_.size() + 1 < p.states.size()) {
    others_.emplace_back(context_.lowering().program(), context_.machine());
  }
  pool.each(p.states.size(), [&](std::size_t i) { place_one(p, i); });
  allowance_.spend(static_cast<std::int64_t>(p.states.size()));
  const int taken = turns(p.states.size());
  placing_ = std::max((Clock::now() - begun) / taken - p.packing.time, Nanos{0});
  return take_best(p);
}

/// The fastest of those that are faster than the best plan.
void TideSearch::choose_states(Placing& p) {
  // Fewer of them where there is no time for several turns.
  LoadSearch& load = side_->load;
  const bool one_turn = !allowance_.repeats() && allowance_.time_left() < 2 * placing_;
  const std::size_t most = one_turn ? std::min(kPlaced, load.pool().threads()) : kPlaced;
  for (std::size_t i = 0; i < load.found() && p.states.size() < most; ++i) {
    if (load.iteration_time(i) >= best_.iteration_time) continue;
    p.states.push_back({load.strategy(i), load.iteration_time(i), load.lead(i), {}});
  }
}

std::vector<Nanos> TideSearch::passed_over() {
  constexpr double kAgain = 4;
  const double now = effort(packing_search());
  std::vector<Nanos> times;
  for (const auto& [time, before] : side_->failed) {
    const bool no_stall = time <= least_time() + tolerated_stall();
    if (!no_stall && time < best_.iteration_time && now < kAgain * before) times.push_back(time);
  }
  return times;
}

Bytes TideSearch::take_best(Placing& p) {
  std::optional<Bytes> least_excess;
  const Nanos as_fast = p.states.front().time + tolerated_stall();
  for (State& state : p.states) {
    if (state.trial.needed > 0 && state.time <= as_fast) {
      const Bytes excess = std::max<Bytes>(state.trial.excess(budget_), 0);
      least_excess = std::min(least_excess.value_or(excess), excess);
    }
    auto& lowered = state.trial.lowered;
    if (!lowered) {
      // Once another had addresses this one was given up.
      if (!p.placed) side_->remember_failed(state.time, effort(p.packing));
      continue;
    }
    side_->placed = true;
    take(std::move(*lowered),
         p.limit >= kNoDeviceLimit
             ? "the search"
             : fmt::format("the search under a load of {}", format_bytes(p.limit)));
  }
  return least_excess.value_or(0);
}

void TideSearch::place_one(Placing& p, std::size_t i) {
  Lowering& lowering = i == 0 ? context_.lowering() : others_[i - 1];
  State& state = p.states[i];
  LowerOptions placing;
  placing.attempts = 1;
  placing.load_limit = p.limit;
  placing.lead = longest_lead(lowering, state, p.limit);
  if (i == 0 || !allowance_.repeats()) placing.packing = p.packing;
  placing.packing.seed = hash_combine(p.seed, i);
  // Which of them is placed first is no matter of evaluations.
  const bool any = !allowance_.repeats();
  placing.packing.stop = [&p, any] { return any && p.placed; };
  placing.packing.give_up = context_.options().stop;
  placing.faster_than = p.faster_than;
  state.trial = place(lowering, state.strategy, budget_, placing);
  const auto& lowered = state.trial.lowered;
  if (lowered && lowered->iteration_time <= p.states.front().time) p.placed = true;
}

/// The longest lead of copies in that costs no time: it forgives the latest copies. On a real
/// link, plans with short leads were some percent slower than predicted.
Nanos TideSearch::longest_lead(Lowering& lowering, const State& state, Bytes limit) const {
  for (const Nanos lead : {Nanos::max(), least_time() / 8, least_time() / 80}) {
    if (lead <= state.lead) break;
    const Evaluation e =
        lowering.evaluator().evaluate(state.strategy, {limit, true, lead, state.time});
    if (e.feasible && e.iteration_time <= state.time) return lead;
  }
  return state.lead;
}

}  // namespace tidepool
