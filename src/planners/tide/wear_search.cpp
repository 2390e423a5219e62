#include "planners/tide/wear_search.h"

#include <algorithm>
#include <cmath>

#include "ir/load_profile.h"
#include "planners/planner_context.h"
#include "schedule/plan_totals.h"

namespace tidepool {
namespace {

constexpr Bytes kWearSteps = 512;  ///< of the load limit
/// Evaluations of the first round for each gap that may be away, and how much longer each round is.
constexpr double kFirstWearRound = 0.5;
constexpr double kWearGrowth = 1.2;

}  // namespace

WearSearch::WearSearch(Lowering& lowering, const Budget& budget,
                       std::span<const RemakableGap> remakable, const AlgorithmSpace& space,
                       Nanos fast_enough)
    : lowering_(lowering),
      budget_(budget),
      fast_enough_(fast_enough),
      search_(lowering, least_workspace_algorithms(lowering.program()), remakable, &space),
      limit_(budget.device, kWearSteps) {}

void WearSearch::add_plan(Lowered plan) {
  const Bytes written = written_to_files(plan.plan);
  const bool less = written_ < 0 || written < written_ ||
                    (written == written_ && plan.iteration_time < best_.iteration_time);
  if (!less) return;
  written_ = written;
  best_ = std::move(plan);
}

WearSearch::State WearSearch::state_of(const Strategy& strategy) const {
  return {away_gaps(strategy.gaps), strategy.algorithms};
}

/// The longest with which the state is fast enough; the shortest where none is.
Nanos WearSearch::lead_of(const State& start, Bytes limit) {
  const Nanos compute = search_.compute_time();
  search_.set_algorithms(start.algorithms);
  for (const Nanos lead : {Nanos::max(), compute / 8}) {
    if (search_.time_of(start.away, limit, lead) <= fast_enough_) return lead;
  }
  return compute / 1000;
}

/// A state under the limit that is fast enough and writes less than the best plan.
bool WearSearch::find(Bytes limit, const Options& options, std::int64_t evaluations,
                      Allowance& left) {
  constexpr std::int64_t kTimings = 2;
  constexpr std::int64_t kPruning = 8;  // the part of the trials left to it
  const State known = state_of(best_.strategy);
  lead_ = lead_of(known, limit);
  search_.set_algorithms(known.algorithms);
  std::vector<AwayGaps> seeds{known.away};
  if (found_.algorithms == known.algorithms) seeds.push_back(found_.away);
  GapSearchOptions searching;
  searching.seed = options.seed;
  searching.allowance = left.at_most(evaluations);
  searching.stop = options.stop;
  searching.lead = lead_;
  searching.trials = static_cast<std::size_t>(evaluations - evaluations / kPruning);
  searching.fast_enough = fast_enough_;
  const bool feasible = search_.run(limit, seeds, searching);
  left.spend(search_.spent() + kTimings);
  if (!feasible || search_.time() > fast_enough_ || search_.written() >= written_) return false;
  found_ = {search_.best(), search_.best_algorithms()};
  return true;
}

/// Returns by how much addresses without waits exceed the budget; 0 where there is a plan.
Bytes WearSearch::place_found(Bytes limit, int round, const Options& options) {
  constexpr int kMostRounds = 4;
  LowerOptions placing;
  placing.attempts = 1;
  placing.load_limit = limit;
  placing.lead = lead_;
  placing.faster_than = fast_enough_ + Nanos{1};
  placing.stop = options.stop;
  placing.packing.rounds = std::min(round, kMostRounds);
  placing.packing.seed = options.seed;
  placing.packing.stop = options.stop;
  search_.set_algorithms(found_.algorithms);
  Trial trial = place(lowering_, search_.strategy(found_.away), budget_, placing);
  if (!trial.lowered) return std::max<Bytes>(trial.excess(budget_), 0);
  if (trial.lowered->iteration_time <= fast_enough_) add_plan(std::move(*trial.lowered));
  return 0;
}

void WearSearch::run(const Options& options) {
  const std::size_t gaps = lowering_.index().gaps().size();
  if (best_.strategy.gaps.size() != gaps ||
      best_.strategy.algorithms.size() != lowering_.program().ops.size()) {
    return;  // some complete plans have no strategy of this program
  }
  // What the best left of the budget is a first guess.
  if (best_.load_limit > 0 && best_.load_limit < budget_.device) {
    limit_.tighten(budget_.device - best_.load_limit);
  }
  Allowance left = options.allowance.part(1);
  constexpr double kLeastRound = 64;
  const double first = std::max(kFirstWearRound * static_cast<double>(gaps), kLeastRound);
  constexpr double kMost = 1e9;
  for (int round = 0; written_ > 0 && !left.used_up() && !options.stop.requested(); ++round) {
    const auto evaluations = std::llround(std::min(first * std::pow(kWearGrowth, round), kMost));
    if (left.repeats() && round > 0 && evaluations > left.evaluations_left()) break;
    const Bytes limit = limit_.bytes();
    Options of_round = options;
    of_round.seed = hash_combine(options.seed, static_cast<std::uint64_t>(round));
    // Rounds of the search for addresses may take minutes each.
    of_round.stop = [&] { return options.stop.requested() || (!left.repeats() && left.used_up()); };
    const bool found = find(limit, of_round, evaluations, left);
    const Bytes excess = found ? place_found(limit, round, of_round) : 0;
    left.spend(1);
    limit_.follow(excess);
  }
}

}  // namespace tidepool
