#include "planning/host_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/at.h"
#include "base/quantity.h"
#include "check/check.h"
#include "lower/memory_sizes.h"
#include "lower/time_plan.h"
#include "planners/toolkit/wear.h"
#include "planning/host_over_file.h"
#include "planning/make_plan.h"
#include "schedule/plan_totals.h"

namespace tidepool {
namespace {

using HostClock = std::chrono::steady_clock;

// Note [Host budget]. `HostBudgetSearch` is the one search: it finds a plan in a host budget or
// says that it has none. A search that swaps as if the host had any size is the best start: where
// its plan fits, nothing else is needed. Where it does not, no single search is right: plans that
// swap less are found on a machine whose way to the host is slower, and how much slower is not
// known before; one whose own evaluation keeps to the host budget finds what only it can. So the
// time is shared out: turns of about equal length, the last of which is the search in the budget
// itself.
//
// The least host budget that is enough is a question about that search, not another search: which
// turns it takes, and how much slower it makes the host, depends on the budget, so that a plan seen
// on the way to one budget need not be found on the way to another. What is named has to be enough
// when it is given. So the search is asked again, shorter, in budgets by halves between the one it
// failed in and the one of its first plan; and where it fails at full length in a budget that was
// named, it is asked as short as it was then.
//
// With a limit of evaluations each search has the whole limit, and no clock is asked.

/// Of the time: enough for a search to tell whether the host is short of memory. It is lost where
/// the host is; where it is not, the plan of the whole time is hardly better.
constexpr double kTell = 0.125;
/// A search that took less than this of its time ended by itself: more time would change nothing.
constexpr double kEndedItself = 0.8;
/// Of the rest: moving what the first plan has on the host on to the file, which AutoSwap does
/// quickly.
constexpr double kFileOfFirst = 0.1;
/// Of the rest: as if the part of the way that goes on to the file belonged to each copy. Where
/// there is a file this is most often the fastest plan: a long turn.
constexpr double kOnTheWay = 0.4;
/// Of a turn with a file: what plans the device; the rest is for what goes on to the file.
constexpr double kOfDevice = 2.0 / 3;
/// So many factors are tried by which the way to the host may be slower: by halves, in logarithms.
constexpr int kFactors = 3, kFactorsWithFile = 2;
/// The first of them. A plan that still does not fit is tried again with so much more.
constexpr double kFirstFactor = 8;
/// Of the rest, where `after` turns come with this one, and half of one in the end.
constexpr double share_of_turn(int after) { return 1 / (after + 0.5); }

/// With `part` of the time that is left after `spent`, where time is limited.
PlannerOptions in_time(PlannerOptions options, double part, Nanos spent = {}) {
  if (options.time_limit == Nanos::max()) return options;
  const double nanos = part * static_cast<double>((options.time_limit - spent).count());
  options.time_limit = std::max(Nanos{std::llround(nanos)}, Nanos{1});
  return options;
}

/// A limit of evaluations makes the result one of the seed alone.
bool asks_the_clock(const PlannerOptions& options) { return options.evaluation_limit == 0; }

class HostBudgetSearch {
 public:
  HostBudgetSearch(Planner& planner, Workload& workload, const Machine& machine,
                   const Budget& budget, const PlannerOptions& options)
      : planner_(planner),
        workload_(workload),
        machine_(machine),
        budget_(budget),
        any_host_(budget),
        options_(options) {
    any_host_.host = 0;
  }

  Result<Planned> plan() {
    const PlannerOptions share = part_of_rest(kTell);
    auto first = plan_on(machine_, any_host_, share);
    const bool whole =
        !timed() || HostClock::now() - start_ < in_time(share, kEndedItself).time_limit;
    if (!first) return whole ? std::move(first) : plan_on(machine_, any_host_, rest());
    auto planned =
        fits(*first) ? in_much(std::move(*first), whole) : in_little(std::move(*first), whole);
    if (planned) {
      planned->plan_time = HostClock::now() - start_ - waited_ - planned->check_time;
    } else if (planned.error().code == ErrorCode::infeasible && least_ < kNoSpaceLimit) {
      // What a search by the clock found once it may miss by a little the next time.
      planned.error().smallest_feasible = whole ? least_ : least_ + least_ / 10;
      planned.error().of_host = true;
    }
    return planned;
  }

 private:
  /// `first`: fits. `whole`: its search ended by itself.
  Result<Planned> in_much(Planned first, bool whole) {
    Result<Planned> best = std::move(first);
    if (whole) return best;
    auto longer = plan_on(machine_, any_host_, rest());
    if (longer && fits(*longer)) take_better(std::move(longer), best);
    return best;
  }

  /// `any`: what is found in any host budget.
  Result<Planned> in_little(Planned any, bool whole) {
    // Where that search ended by itself, nothing is faster.
    const Nanos least = whole ? any.lowered.iteration_time : Nanos{0};
    const Machine on_the_way =
        has_file() ? with_file_on_the_way(any.lowered.plan.host_bytes()) : machine_;
    Result<Planned> best = in_budget(std::move(any), part_of_rest(kFileOfFirst));
    const auto enough = [&] {
      return options_.stop.requested() || (!best && best.error().code != ErrorCode::infeasible) ||
             (best && best->lowered.iteration_time <= least &&
              written_to_files(best->lowered.plan) == 0);
    };
    int left = has_file() ? kFactorsWithFile : kFactors;
    // A longer search may need less.
    if (!enough() && !whole && try_on(machine_, share_of_turn(left + 2), best) && best) {
      return in_much(std::move(*best), false);
    }
    if (!enough() && has_file()) try_on(on_the_way, kOnTheWay, best);
    // As much slower as it takes, and no more: what fits with room to spare could swap more.
    double low = 1, high = 0;
    for (; left > 0 && !enough(); --left) {
      const double factor = high == 0 ? low * kFirstFactor : std::sqrt(low * high);
      (try_on(with_slower_host(factor), share_of_turn(left), best) ? high : low) = factor;
    }
    if (enough()) return best;
    auto within = plan_on(machine_, budget_, rest());
    if (!best && !has_file()) return within;  // an error that says more
    take_better(std::move(within), best);
    return best;
  }

  /// Plans as if on `machine`, in a part of the time that is left, and keeps what is faster on the
  /// machine as it is. Whether its plan fits as it is.
  bool try_on(const Machine& machine, double part, Result<Planned>& best) {
    const auto begun_at = HostClock::now();
    const PlannerOptions share = part_of_rest(part);
    auto planned = plan_on(machine, any_host_, in_time(share, has_file() ? kOfDevice : 1));
    if (!planned) return false;
    const bool fitted = fits(*planned);
    take_better(in_budget(std::move(*planned), in_time(share, 1, HostClock::now() - begun_at)),
                best);
    return fitted;
  }

  Result<Planned> plan_on(const Machine& machine, const Budget& budget,
                          const PlannerOptions& options) {
    const auto begun_at = HostClock::now();
    auto planned = plan_once(planner_, workload_, machine, budget, options);
    if (planned) {
      waited_ += HostClock::now() - begun_at - planned->plan_time - planned->check_time;
      least_ = std::min(least_, planned->lowered.plan.host_bytes());
    }
    return planned;
  }

  [[nodiscard]] bool has_file() const { return machine_.behind_host() != kNone; }
  [[nodiscard]] bool fits(const Planned& planned) const {
    return planned.lowered.plan.host_bytes() <= budget_.host;
  }
  [[nodiscard]] bool timed() const {
    return asks_the_clock(options_) && options_.time_limit != Nanos::max();
  }
  [[nodiscard]] PlannerOptions part_of_rest(double part) const {
    return in_time(options_, part, HostClock::now() - start_);
  }
  [[nodiscard]] PlannerOptions rest() const { return part_of_rest(1); }

  /// The faster one; of those as fast as the fastest, the one that writes less to files.
  void take_better(Result<Planned> other, Result<Planned>& best) {
    if (!other) return;
    fastest_ = std::min(fastest_, other->lowered.iteration_time);
    if (!best || is_better(other->lowered, best->lowered)) best = std::move(other);
  }

  [[nodiscard]] bool is_better(const Lowered& other, const Lowered& best) const {
    const Nanos as_fast = as_fast_as(std::min(fastest_, best.iteration_time));
    if (best.iteration_time > as_fast) return other.iteration_time < best.iteration_time;
    if (other.iteration_time > as_fast) return false;
    return std::pair(written_to_files(other.plan), other.iteration_time) <
           std::pair(written_to_files(best.plan), best.iteration_time);
  }

  [[nodiscard]] Machine with_slower_host(double factor) const {
    Machine m = machine_;
    for (Link& link : m.links) {
      if (link.from >= m.devices() && link.to >= m.devices()) continue;
      if (link.from != m.host() && link.to != m.host()) continue;
      link.speed.bytes_per_second /= factor;
    }
    return m;
  }

  /// Where a plan needs `needed` bytes of the host.
  [[nodiscard]] Machine with_file_on_the_way(Bytes needed) const {
    const double share =
        1 - static_cast<double>(budget_.host) / static_cast<double>(std::max<Bytes>(needed, 1));
    const SpaceId host = machine_.host();
    const SpaceId file = machine_.behind_host();
    const auto slow = [share](LinkSpeed& near, const LinkSpeed& far) {
      near.bytes_per_second = 1 / (1 / near.bytes_per_second + share / far.bytes_per_second);
      near.latency += far.latency;
    };
    Machine m = machine_;
    slow(m.to_host(), machine_.find_link(host, file)->speed);
    slow(m.to_device(), machine_.find_link(file, host)->speed);
    return m;
  }

  /// Inside all budgets, timed on the machine as it is, and proved.
  Result<Planned> in_budget(Planned planned, const PlannerOptions& options) {
    if (!has_file() && !fits(planned)) return fail(ErrorCode::infeasible, "needs more of the host");
    const auto program = workload_.program(planned.sub_batch());
    if (!program) return fail(program.error());
    Lowered& lowered = planned.lowered;
    TimedPlan timed = time_plan(**program, lowered.plan, machine_);
    lowered.iteration_time = timed.iteration_time;
    lowered.unplaced_time = std::min(lowered.unplaced_time, timed.iteration_time);
    lowered.steps = std::move(timed.steps);
    if (!fits(planned)) {
      auto whole = with_host_over_file(**program, lowered, machine_, budget_, options);
      if (!whole && whole.error().of_host && whole.error().smallest_feasible) {
        least_ = std::min(least_, *whole.error().smallest_feasible);
      }
      if (!whole) return fail(whole.error());
      lowered = std::move(*whole);
      lowered.plan.planner = planner_.name();
    }
    const auto planned_at = HostClock::now();
    if (auto proof = check(**program, lowered.plan, check_limits(machine_, budget_)); !proof) {
      return fail(proof.error());
    }
    planned.check_time += HostClock::now() - planned_at;
    return planned;
  }

  Planner& planner_;
  Workload& workload_;
  const Machine& machine_;
  const Budget& budget_;
  Budget any_host_;
  const PlannerOptions& options_;
  HostClock::time_point start_ = HostClock::now();
  Nanos fastest_ = Nanos::max();  ///< of plans in the budget
  Nanos waited_{};                ///< while the workload measured
  Bytes least_ = kNoSpaceLimit;   ///< of the host that would have done
};

/// By halves, to a thousandth of what there is to tell. They have their own time, as the search
/// that failed has used its limit up: without a step what is named may be half as much again.
constexpr int kSteps = 10;
/// One in the budget, one with any host, and the steps.
constexpr int kSearches = kSteps + 2;
/// All of them take the time limit once more, and none of them longer or shorter than this.
constexpr Nanos kQuick = std::chrono::milliseconds(200), kBrief = std::chrono::milliseconds(10);
/// With a limit of evaluations: so many in each search.
constexpr std::int64_t kFewEvaluations = 500;

PlannerOptions quickly(PlannerOptions options) {
  options.progress = nullptr;
  if (asks_the_clock(options)) {
    options.time_limit = std::clamp(options.time_limit / kSearches, kBrief, kQuick);
  } else {
    options.evaluation_limit = std::min(options.evaluation_limit, kFewEvaluations);
  }
  return options;
}

/// `budget`: `wanted` within the machine's memory.
Error too_small_host(Error error, const Budget& budget, Bytes enough, const Budget& wanted,
                     const Machine& machine, const Planner& planner) {
  const std::string named =
      wanted.host > 0 ? "`host_budget`" : fmt::format("host memory of '{}',", machine.name);
  const Bytes device = wanted.device;
  error.smallest_feasible = enough;
  error.of_host = true;
  error.message = fmt::format(
      "{} {} B ({}) is too small for what leaves the device{}; {} B ({}) are enough with planner "
      "'{}', the least found",
      named, budget.host, format_bytes(budget.host),
      limited(wanted) ? fmt::format(" at {} B ({})", device, format_bytes(device)) : "", enough,
      format_bytes_up(enough), planner.name());
  return error;
}

}  // namespace

Result<Planned> plan_in_host_budget(Planner& planner, Workload& workload, const Machine& machine,
                                    const Budget& budget, const PlannerOptions& options) {
  return HostBudgetSearch(planner, workload, machine, budget, options).plan();
}

Result<Planned> plan_or_least_host_budget(Error error, Planner& planner, Workload& workload,
                                          const Machine& machine, const Budget& wanted,
                                          const PlannerOptions& options, Least least) {
  const auto budget = within_memory(machine, wanted);
  if (error.code != ErrorCode::infeasible || !budget || budget->host == 0) return fail(error);
  const PlannerOptions quick = quickly(options);
  Machine any_host = machine;
  any_host.spaces[at(machine.host())].bytes = 0;
  const auto within = [&](Bytes host, const PlannerOptions& how) {
    return make_plan(planner, workload, any_host, {wanted.device, host, wanted.others}, how);
  };
  if (auto planned = within(budget->host, quick)) return planned;
  auto without = within(0, quick);
  if (!without) return fail(error);  // the host is not what it fails for
  Bytes enough = without->lowered.plan.host_bytes();
  if (enough <= budget->host) return without;  // proved, and inside the budget after all
  const Bytes alignment = machine.spaces[at(machine.host())].alignment;
  // The search that failed was longer and saw plans that need less. By the clock nothing is sure to
  // be found again; where it is, only what these searches find is named.
  if (asks_the_clock(options) && error.of_host && error.smallest_feasible) {
    enough = std::min(enough, align_up(*error.smallest_feasible, alignment));
  }
  const auto interrupted = [] {
    return fail(ErrorCode::interrupted, "interrupted while looking for the smallest host budget");
  };
  Bytes low = budget->host / alignment * alignment;
  for (int left = least == Least::named ? kSteps : 0; left > 0 && enough - low > alignment;
       --left) {
    if (options.stop.requested()) return interrupted();
    const Bytes middle = align_up(low + (enough - low) / 2, alignment);
    (within(middle, quick) ? enough : low) = middle;
  }
  // What short searches miss a whole one may find, as it will when it is asked for that budget.
  const bool whole = least == Least::named && asks_the_clock(options);
  for (const int eighths : {1, 2, 4}) {
    const Bytes more = align_up(budget->host + budget->host * eighths / 8, alignment);
    if (!whole || more >= enough) break;
    if (options.stop.requested()) return interrupted();
    if (within(more, options)) enough = more;
  }
  return fail(too_small_host(std::move(error), *budget, enough, wanted, machine, planner));
}

}  // namespace tidepool
