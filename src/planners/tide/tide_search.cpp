#include "planners/tide/tide_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

#include "base/counted.h"
#include "base/random.h"
#include "ir/load_profile.h"
#include "planners/autoswap/autoswap_load.h"
#include "planners/tide/wear_search.h"
#include "planners/toolkit/wear.h"
#include "schedule/plan_totals.h"

namespace tidepool {
namespace {

using Clock = Allowance::Clock;

constexpr std::uint64_t kToTheBudget = 3;            ///< every third round
constexpr std::size_t kPlaced = LoadSearch::kLanes;  ///< states of a round

/// Stalls of this part of the compute time are no reason to move more bytes: on devices whose
/// copies take memory bandwidth from kernels that costs more than it saves.
constexpr int kNegligible = 2000;
constexpr Bytes kSteps = 512;  ///< of the load limit

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

TideSearch::TideSearch(PlannerContext& context, Lowered first, const Options& options)
    : context_(context),
      budget_(context.budget()),
      name_(options.name),
      recompute_(options.recompute),
      allowance_(context.allowance()),
      best_(std::move(first)),
      origin_(options.origin),
      load_(context.lowering(), context.algorithms(context.lowering().program()), options.threads,
            options.recompute, context.stopped_or_late(),
            space(context, context.lowering(), options)),
      limit_(budget_.device, kSteps) {
  for (const PassTime& pass : best_.pass_times) placing_ += pass.time;
  load_.add_seed(best_.strategy);
  if (!options.score_picks) return;
  const double part = recompute_ ? 1.0 / 5 : 1.0 / 2;
  if (load_.space().empty()) {
    add_score_picks(context.algorithms(context.lowering().program()), part);
  } else {
    add_score_picks(load_.space().fastest(), part / 2);
    add_score_picks(least_workspace_algorithms(context.lowering().program()), part / 2);
  }
}

AlgorithmSpace TideSearch::space(const PlannerContext& context, const Lowering& lowering,
                                 const Options& options) {
  if (!options.algorithms) return {};
  const Program& program = lowering.program();
  return {program, context.machine().alignment(), context.budget().device,
          least_workspace_algorithms(program)};
}

void TideSearch::add_plan(Lowered plan, std::string_view origin) {
  load_.add_seed(plan.strategy);
  take(std::move(plan), std::string(origin));
}

/// A plan that is faster than the best, or as fast and writes less.
void TideSearch::take(Lowered plan, std::string origin) {
  if (plan.iteration_time < best_.iteration_time) {
    std::swap(plan, best_);
    origin_ = std::move(origin);
  }
  if (!leaves_to_file(context_.machine())) return;
  frugal_.push_back(std::move(plan));
  const Nanos fast_enough = as_fast_as(best_.iteration_time);
  const Bytes written = written_to_files(best_.plan);
  std::erase_if(frugal_, [&](const Lowered& other) {
    return other.iteration_time > fast_enough || written_to_files(other.plan) >= written;
  });
}

void TideSearch::write_less(const Allowance& allowance) {
  if (!leaves_to_file(context_.machine())) return;
  const Nanos fastest = best_.iteration_time;
  const Bytes before = written_to_files(best_.plan);
  WearSearch search(context_.lowering(), budget_, load_.remakable(), load_.space(),
                    as_fast_as(fastest));
  for (Lowered& other : frugal_) search.add_plan(std::move(other));
  frugal_.clear();
  search.add_plan(std::move(best_));
  // A streaming schedule runs algorithms that nobody may choose for another.
  const auto usual = context_.algorithms(context_.lowering().program());
  if (!load_.space().empty() || search.best().strategy.algorithms == usual) {
    search.run({context_.options().seed, allowance, context_.options().stop});
  }
  best_ = std::move(search.best());
  const Bytes after = written_to_files(best_.plan);
  if (after == before) return;
  wear_note_ =
      fmt::format("; writes {} in {}, the plan found for speed alone {} in {}", format_bytes(after),
                  format_time(best_.iteration_time), format_bytes(before), format_time(fastest));
}

bool TideSearch::met_the_least() const { return stall() <= load_.compute_time() / kNegligible; }

std::string TideSearch::note() const {
  return fmt::format("best from {}; {}, {}{}", origin_, counted(load_.evaluations(), "evaluation"),
                     counted(load_.moves(), "move"), wear_note_);
}

bool TideSearch::to_the_budget() const { return round_ % kToTheBudget == 0; }

void TideSearch::run() {
  // Where a plan is known that has addresses, what it left of the budget is a first guess.
  const bool known = best_.load_limit > 0 && best_.load_limit < budget_.device;
  if (round_ == 0 && recompute_ && known) limit_.tighten(budget_.device - best_.load_limit);
  for (; !over(); ++round_) {
    const Clock::time_point begun = Clock::now();
    const std::uint64_t seed = hash_combine(context_.options().seed, round_);
    const bool whole = to_the_budget();
    const Bytes load = whole ? budget_.device : limit_.bytes();
    const bool found = search(load, seed);
    if (!found && whole) break;
    const Bytes excess = found ? place_found(load, seed) : 0;
    if (!whole || round_ == 0 || excess == 0) limit_.follow(excess);
    if (excess > 0 && may_be_the_last(Clock::now() - begun)) {
      limit_.at_most(std::max(budget_.device - 2 * excess, limit_.bytes() / 2));
    }
    context_.show_progress(allowance_,
                           fmt::format("{}: {} over the least", name_, format_time(stall())));
  }
}

/// A round that evaluations do not suffice for is not begun: it might find what has no addresses
/// in the place of what has. Nor is one whose states could not be placed in time.
bool TideSearch::over() const {
  const bool too_late = allowance_.repeats() ? load_.next_round() > allowance_.evaluations_left()
                                             : allowance_.time_left() < placing_;
  return allowance_.used_up() || too_late || met_the_least() || context_.stopped();
}

/// Nothing that was found has had addresses, and there may be time for one more round: that one had
/// better find what has. Otherwise a few rounds end with one of the plans they began with, which
/// may be slower than what the same rounds find for a smaller budget.
bool TideSearch::may_be_the_last(Nanos round) const {
  return !placed_ && !allowance_.repeats() && allowance_.time_left() < 2 * round;
}

/// Less than this is not worth the time that states for other limits and addresses need.
Nanos TideSearch::tolerated_stall() const {
  constexpr int kParts = 1250;
  return std::min(load_.compute_time() / kParts, stall() / 2);
}

/// What AutoSwap's scores pick for the budget and for tighter limits: the fastest of it, in a part
/// of the time.
void TideSearch::add_score_picks(const std::vector<std::int32_t>& algorithms, double part) {
  constexpr std::size_t kMost = 8;
  Lowering& lowering = context_.lowering();
  const Stop& stop = context_.options().stop;
  const SwapCandidates candidates(lowering.program(), lowering.index(), lowering.machine(),
                                  algorithms);
  const Allowance mine = allowance_.part(part);
  auto picks = select_for_tighter(lowering.evaluator(), candidates, budget_.device,
                                  [&] { return stop.requested() || mine.used_up(); });
  std::stable_sort(picks.begin(), picks.end(), [](const auto& a, const auto& b) {
    return a.evaluation.iteration_time < b.evaluation.iteration_time;
  });
  if (picks.size() > kMost) picks.resize(kMost);
  for (const LoadedSelection& pick : picks) load_.add_seed(pick.selection.strategy);
}

/// Grows as the search's rounds do, whatever the allowance, so that a larger one begins the same
/// way.
PackingSearch TideSearch::packing_search() {
  if (allowance_.repeats()) {
    // Rounds of that search count no evaluations: a few have to do.
    constexpr std::uint64_t kMostRounds = 6;
    const auto rounds = static_cast<int>(std::min(round_ / kToTheBudget, kMostRounds));
    return {.rounds = to_the_budget() ? rounds : 0};
  }
  constexpr double kFirst = 0.1;
  constexpr double kLonger = 1.3;
  const double time = kFirst * std::pow(kLonger, static_cast<double>(round_));
  // The threads take turns at the states. Before any has had addresses there has to be another
  // round.
  const double of_the_rest = placed_ ? 0.9 : 0.4;
  const double left = to_seconds(allowance_.time_left() - placing_);
  return {.time = from_seconds(
              std::clamp(of_the_rest * left / turns(kPlaced), 0.0, std::min(time, 60.0)))};
}

/// In which the threads have placed so many states.
int TideSearch::turns(std::size_t states) {
  const std::size_t threads = load_.pool().threads();
  return static_cast<int>((states + threads - 1) / threads);
}

/// For as long as placing may take, where stalls are so few that there may soon be none. Where
/// they are many, more states tried with addresses are worth more.
bool TideSearch::search(Bytes limit, std::uint64_t seed) {
  LoadSearchOptions searching{seed, allowance_, context_.options().stop};
  searching.rounds = 1;
  if (!allowance_.repeats()) {
    const double left = to_seconds(allowance_.time_left());
    searching.allowance = allowance_.part(std::max(1 - to_seconds(placing_) / left, 0.0));
  }
  searching.compact = round_ > 0;
  if (searching.compact) searching.tolerated_stall = tolerated_stall();
  const Clock::time_point until =
      Clock::now() + turns(kPlaced) * packing_search().time / (recompute_ ? 2 : 1);
  bool again = true;
  while (again) {
    if (!load_.run(limit, searching)) return false;
    allowance_.spend(std::max<std::int64_t>(load_.spent(), 1));
    searching.seed = hash_combine(searching.seed, 1);
    const Nanos left = load_.iteration_time() - load_.compute_time();
    again = !allowance_.repeats() && left > searching.tolerated_stall &&
            (recompute_ || left < load_.compute_time() / kFewStalls) && Clock::now() < until &&
            !over();
  }
  return true;
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
  // Fewer of them where there is no time for several turns.
  const bool one_turn = !allowance_.repeats() && allowance_.time_left() < 2 * placing_;
  const std::size_t most = one_turn ? std::min(kPlaced, load_.pool().threads()) : kPlaced;
  for (std::size_t i = 0; i < load_.found() && p.states.size() < most; ++i) {
    if (load_.iteration_time(i) >= best_.iteration_time) break;
    p.states.push_back({load_.strategy(i), load_.iteration_time(i), load_.lead(i), {}});
  }
  if (p.states.empty()) return 0;
  // Another seed may find addresses where one does not.
  const bool again = !allowance_.repeats() && p.packing.wanted();
  for (std::size_t i = 0; again && p.states.size() < load_.pool().threads(); ++i) {
    p.states.push_back(p.states[i]);
  }
  while (others_.size() + 1 < p.states.size()) {
    others_.emplace_back(context_.lowering().program(), context_.machine());
  }
  load_.pool().each(p.states.size(), [&](std::size_t i) { place_one(p, i); });
  allowance_.spend(static_cast<std::int64_t>(p.states.size()));
  const int taken = turns(p.states.size());
  placing_ = std::max((Clock::now() - begun) / taken - p.packing.time, Nanos{0});
  return take_best(p);
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
    if (!lowered) continue;
    placed_ = true;
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
  for (const Nanos lead : {Nanos::max(), load_.compute_time() / 8, load_.compute_time() / 80}) {
    if (lead <= state.lead) break;
    const Evaluation e =
        lowering.evaluator().evaluate(state.strategy, {limit, true, lead, state.time});
    if (e.feasible && e.iteration_time <= state.time) return lead;
  }
  return state.lead;
}

Nanos TideSearch::without_recomputing(const Allowance& allowance) {
  GapSearch search(context_.lowering(), best_.strategy.algorithms, {}, &load_.space());
  return search_less(allowance, search, false);
}

Nanos TideSearch::without_choosing(const Allowance& allowance) {
  const auto least = least_workspace_algorithms(context_.lowering().program());
  GapSearch search(context_.lowering(), least, load_.remakable());
  return search_less(allowance, search, true);
}

Nanos TideSearch::search_less(const Allowance& allowance, GapSearch& search, bool remade) {
  const Bytes limit = best_.load_limit > 0 ? best_.load_limit : budget_.device;
  const Strategy& best = best_.strategy;
  const Strategy away = context_.lowering().everything_away(best.algorithms);
  std::vector<AwayGaps> seeds;
  for (const Strategy* strategy : {&best, &away}) {
    if (strategy->gaps.size() != away.gaps.size()) continue;
    AwayGaps& seed = seeds.emplace_back();
    for (const Decision d : strategy->gaps) {
      const bool again = d == Decision::recompute && remade;
      seed.push_back(d == Decision::keep ? kStays : again ? kRemade : kCopied);
    }
  }
  GapSearchOptions options;
  options.seed = context_.options().seed;
  options.allowance = allowance;
  options.stop = context_.options().stop;
  return search.run(limit, seeds, options) ? search.time() : Nanos::max();
}

}  // namespace tidepool
