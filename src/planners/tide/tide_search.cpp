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

/// Stalls of this part of the compute time are no reason to move more bytes: on devices whose
/// copies take memory bandwidth from kernels that costs more than it saves.
constexpr int kNegligible = 2000;
constexpr Bytes kSteps = 512;  ///< of the load limit
/// Programs of more ops have no time for a second search.
constexpr std::size_t kFewOps = 1'500;

}  // namespace

TideSearch::Side::Side(const PlannerContext& context, Lowering& lowering, const Options& options,
                       bool recompute)
    : load(lowering, context.algorithms(lowering.program()), options.threads, recompute,
           context.stopped_or_late(), space(context, lowering, options)),
      limit(context.budget().device, kSteps) {}

TideSearch::TideSearch(PlannerContext& context, Lowered first, const Options& options)
    : context_(context),
      budget_(context.budget()),
      name_(options.name),
      allowance_(context.allowance()),
      best_(std::move(first)),
      origin_(options.origin),
      placing_(best_.lowering_time()) {
  const Program& program = context.lowering().program();
  sides_.emplace_back(context, context.lowering(), options, options.recompute);
  if (!load().remakable().empty() && program.ops.size() <= kFewOps) {
    sides_.emplace_back(context, context.lowering(), options, false);
  }
  side_ = &sides_.front();
  add_seed(best_.strategy);
  if (!options.score_picks) return;
  const double part = load().remakable().empty() ? 1.0 / 2 : 1.0 / 5;
  if (load().space().empty()) {
    add_score_picks(context.algorithms(program), part);
  } else {
    add_score_picks(load().space().fastest(), part / 2);
    add_score_picks(least_workspace_algorithms(program), part / 2);
  }
}

AlgorithmSpace TideSearch::space(const PlannerContext& context, const Lowering& lowering,
                                 const Options& options) {
  if (!options.algorithms) return {};
  const Program& program = lowering.program();
  return {program, context.machine().alignment(), context.budget().device,
          least_workspace_algorithms(program)};
}

/// A search that only swaps copies what the strategy remakes.
void TideSearch::add_seed(const Strategy& strategy) {
  sides_.front().load.add_seed(strategy);
  if (sides_.size() == 1) return;
  Strategy copied = strategy;
  std::ranges::replace(copied.gaps, Decision::recompute, Decision::swap);
  sides_.back().load.add_seed(copied);
}

void TideSearch::add_plan(Lowered plan, std::string_view origin) {
  add_seed(plan.strategy);
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
  WearSearch search(context_.lowering(), budget_, load().remakable(), load().space(),
                    as_fast_as(fastest));
  for (Lowered& other : frugal_) search.add_plan(std::move(other));
  frugal_.clear();
  search.add_plan(std::move(best_));
  // A streaming schedule runs algorithms that nobody may choose for another.
  const auto usual = context_.algorithms(context_.lowering().program());
  if (!load().space().empty() || search.best().strategy.algorithms == usual) {
    search.run({context_.options().seed, allowance, context_.options().stop});
  }
  best_ = std::move(search.best());
  const Bytes after = written_to_files(best_.plan);
  if (after == before) return;
  wear_note_ =
      fmt::format("; writes {} in {}, the plan found for speed alone {} in {}", format_bytes(after),
                  format_time(best_.iteration_time), format_bytes(before), format_time(fastest));
}

bool TideSearch::met_the_least() const { return stall() <= least_time() / kNegligible; }

std::string TideSearch::note() const {
  std::int64_t evaluations = 0;
  std::int64_t moves = 0;
  for (const Side& side : sides_) {
    evaluations += side.load.evaluations();
    moves += side.load.moves();
  }
  return fmt::format("best from {}; {}, {}{}", origin_, counted(evaluations, "evaluation"),
                     counted(moves, "move"), wear_note_);
}

bool TideSearch::to_the_budget() const { return side_->round % kToTheBudget == 0; }

void TideSearch::run() {
  // Where a plan is known that has addresses, what it left of the budget is a first guess.
  Side& first = sides_.front();
  const bool known = best_.load_limit > 0 && best_.load_limit < budget_.device;
  if (first.round == 0 && !load().remakable().empty() && known) {
    first.limit.tighten(budget_.device - best_.load_limit);
  }
  for (bool go_on = true; go_on;) {
    side_ = &next_side();
    go_on = !over() && round();
  }
}

TideSearch::Side& TideSearch::next_side() {
  // Where there is time for few rounds they are all the first's.
  constexpr int kAlone = 3;
  Side& first = sides_.front();
  if (sides_.size() == 1 || first.fruitful < kAlone) return first;
  Side& second = sides_.back();
  return second.spent < second.share * (first.spent + second.spent) ? second : first;
}

/// Of the side whose turn it is. False when nothing is feasible in the budget.
bool TideSearch::round() {
  Side& side = *side_;
  const Clock::time_point begun = Clock::now();
  const std::int64_t spent = allowance_.spent();
  const std::uint64_t seed = hash_combine(context_.options().seed, side.round);
  const bool whole = to_the_budget();
  const Bytes load = whole ? budget_.device : side.limit.bytes();
  const bool found = search(load, seed);
  if (!found && whole) {
    if (side_ == &sides_.front()) return false;
    sides_.pop_back();
    return true;
  }
  const bool faster = found && side.load.iteration_time() < best_.iteration_time;
  const Nanos before = best_.iteration_time;
  const Bytes excess = found ? place_found(load, seed) : 0;
  if (!whole || side.round == 0 || excess == 0) side.limit.follow(excess);
  if (excess > 0 && may_be_the_last(Clock::now() - begun)) {
    side.limit.at_most(std::max(budget_.device - 2 * excess, side.limit.bytes() / 2));
  }
  ++side.round;
  side.spent += allowance_.repeats() ? static_cast<double>(allowance_.spent() - spent)
                                     : to_seconds(Clock::now() - begun);
  if (found) ++side.fruitful;
  const bool second = side_ != &sides_.front();
  if (second && found) share_with_second(faster, best_.iteration_time < before);
  context_.show_progress(allowance_,
                         fmt::format("{}: {} over the least", name_, format_time(stall())));
  return true;
}

/// After a round of the second search. What it found may be a good start where gaps are remade too.
void TideSearch::share_with_second(bool faster, bool best) {
  constexpr double kLeast = 1.0 / 8;
  Side& second = sides_.back();
  second.share = faster ? kHalf : std::max(second.share / 4, kLeast);
  if (best) sides_.front().load.add_seed(best_.strategy);
}

/// A round that evaluations do not suffice for is not begun: it might find what has no addresses
/// in the place of what has. Nor is one whose states could not be placed in time.
bool TideSearch::over() const {
  const bool too_late = allowance_.repeats()
                            ? side_->load.next_round() > allowance_.evaluations_left()
                            : allowance_.time_left() < placing_;
  return allowance_.used_up() || too_late || met_the_least() || context_.stopped();
}

/// Nothing that was found has had addresses, and there may be time for one more round: that one had
/// better find what has. Otherwise a few rounds end with one of the plans they began with, which
/// may be slower than what the same rounds find for a smaller budget.
bool TideSearch::may_be_the_last(Nanos round) const {
  return !side_->placed && !allowance_.repeats() && allowance_.time_left() < 2 * round;
}

/// Less than this is not worth the time that states for other limits and addresses need.
Nanos TideSearch::tolerated_stall() const {
  constexpr int kParts = 1250;
  return std::min(least_time() / kParts, stall() / 2);
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
  for (const LoadedSelection& pick : picks) add_seed(pick.selection.strategy);
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
  searching.compact = side_->round > 0;
  if (searching.compact) searching.tolerated_stall = tolerated_stall();
  const std::vector<Nanos> without_addresses = passed_over();
  searching.passed_over = without_addresses;
  LoadSearch& load = side_->load;
  const bool recompute = !load.remakable().empty();
  const Clock::time_point begun = Clock::now();
  Clock::time_point until = begun;
  for (bool again = true; again;) {
    if (!load.run(limit, searching)) return false;
    if (until == begun) {
      side_->searched = Clock::now() - begun;
      until = begun + turns(kPlaced) * packing_search().time / (recompute ? 2 : 1);
    }
    allowance_.spend(std::max<std::int64_t>(load.spent(), 1));
    searching.seed = hash_combine(searching.seed, 1);
    const Nanos left = load.iteration_time() - load.compute_time();
    again = !allowance_.repeats() && left > searching.tolerated_stall &&
            (recompute || left < load.compute_time() / kFewStalls) && Clock::now() < until &&
            !over();
  }
  return true;
}

Nanos TideSearch::without_recomputing(const Allowance& allowance) {
  GapSearch search(context_.lowering(), best_.strategy.algorithms, {}, &load().space());
  return search_less(allowance, search, false);
}

Nanos TideSearch::without_choosing(const Allowance& allowance) {
  const auto least = least_workspace_algorithms(context_.lowering().program());
  GapSearch search(context_.lowering(), least, load().remakable());
  return search_less(allowance, search, true);
}

Nanos TideSearch::search_less(const Allowance& allowance, GapSearch& search, bool remade) {
  const Bytes limit = best_.load_limit > 0 ? best_.load_limit : budget_.device;
  const Strategy& best = best_.strategy;
  const Strategy away = context_.lowering().everything_away(best.algorithms);
  std::vector<AwayGaps> seeds;
  for (const Strategy* strategy : {&best, &away}) {
    if (strategy->gaps.size() != away.gaps.size()) continue;
    AwayGaps& seed = seeds.emplace_back(away_gaps(strategy->gaps));
    if (!remade) std::ranges::replace(seed, kRemade, kCopied);
  }
  GapSearchOptions options;
  options.seed = context_.options().seed;
  options.allowance = allowance;
  options.stop = context_.options().stop;
  return search.run(limit, seeds, options) ? search.time() : Nanos::max();
}

}  // namespace tidepool
