#include "lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/at.h"
#include "base/invariant.h"
#include "base/least.h"
#include "base/quantity.h"
#include "ir/load_profile.h"
#include "lower/placing/emit.h"

namespace tidepool {
namespace {

/// Adds the time since its construction to a named pass.
class PassTimer {
 public:
  PassTimer(std::vector<PassTime>& times, std::string_view pass) : times_(times), pass_(pass) {}
  PassTimer(const PassTimer&) = delete;
  PassTimer& operator=(const PassTimer&) = delete;
  ~PassTimer() {
    const auto took = std::chrono::duration_cast<Nanos>(std::chrono::steady_clock::now() - start_);
    for (PassTime& t : times_) {
      if (t.pass == pass_) {
        t.time += took;
        return;
      }
    }
    times_.push_back({std::string(pass_), took});
  }

 private:
  std::vector<PassTime>& times_;
  std::string_view pass_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Lowering::Lowering(const Program& program, const Machine& machine)
    : program_(program),
      machine_(machine),
      index_(program),
      evaluator_(program, index_, machine_) {}

/// Everything leaves the device after each use; what the host still holds is not copied again.
Strategy Lowering::everything_away(std::vector<std::int32_t> algorithms) const {
  Strategy strategy = keep_everything(program_, index_, std::move(algorithms));
  for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
    if (index_.gaps()[g].kind == GapKind::device) strategy.gaps[g] = Decision::swap;
  }
  for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) {
    derive_drops(index_, t, strategy.gaps);
  }
  return strategy;
}

Nanos Lowered::lowering_time() const {
  Nanos sum{0};
  for (const PassTime& pass : pass_times) sum += pass.time;
  return sum;
}

/// What one attempt has so far. Its passes are run in order; one that returns false ends it.
struct Lowering::Attempt {
  const Strategy& strategy;
  const Budget& budget;
  const EvaluateOptions& timing;
  const LowerOptions& options;
  Evaluation evaluation;
  Timeline timeline;
  std::vector<Bytes> limits;  ///< by space
  std::vector<Arena> arenas;
  Lowered result;
};

/// A pass, and what is proved of its outcome in builds with assertions.
struct Lowering::Pass {
  std::string_view name;
  bool (Lowering::*run)(Attempt&);
  Result<void> (Lowering::*verify)(const Attempt&);
};

constexpr std::array<Lowering::Pass, 4> Lowering::kPasses{{
    {"expand and time", &Lowering::expand_and_time, &Lowering::verify_timeline},
    {"place on the device", &Lowering::place_on_device, &Lowering::verify_addresses},
    {"place away", &Lowering::place_away, &Lowering::verify_addresses},
    {"emit", &Lowering::emit, &Lowering::verify_plan},
}};

bool Lowering::expand_and_time(Attempt& a) {
  a.evaluation = evaluator_.evaluate(a.strategy, a.timing);
  refused_ = a.evaluation.refused;
  // Waits that addresses need make no timeline faster.
  if (!a.evaluation.feasible || a.evaluation.iteration_time >= a.options.faster_than) return false;
  a.timeline.steps.assign(evaluator_.steps().begin(), evaluator_.steps().end());
  a.timeline.iteration_time = a.evaluation.iteration_time;
  a.timeline.find(program_, a.strategy, evaluator_.expansion());
  a.result.strategy = a.strategy;
  a.result.compute_time = a.evaluation.compute_time;
  a.result.iteration_time = a.result.unplaced_time = a.evaluation.iteration_time;
  a.result.peak_load = a.evaluation.peak_load;
  a.result.load_limit = a.timing.load_limit;
  for (const MemorySpace& space : machine_.spaces) {
    a.arenas.push_back({space.kind, 0, space.alignment});
  }
  placer_.begin(a.timeline);
  return true;
}

Result<void> Lowering::verify_timeline(const Attempt& a) {
  const Expansion& x = evaluator_.expansion();
  std::vector<char> calls(x.calls.size(), 0);
  std::vector<char> moves(x.moves.size(), 0);
  const auto& steps = a.timeline.steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto& done = steps[i].kind == StepKind::op ? calls : moves;
    if (done[static_cast<std::size_t>(steps[i].id)]++ != 0) {
      return fail(ErrorCode::check_failed, fmt::format("step {} is listed twice", i));
    }
    for (const StepWait& wait : steps[i].waits) {
      if (wait.index == kNone || wait.iteration == -1) continue;
      if (wait.index < 0 || static_cast<std::size_t>(wait.index) >= i) {
        return fail(ErrorCode::check_failed, fmt::format("step {} waits forwards", i));
      }
    }
  }
  if (steps.size() != calls.size() + moves.size()) {
    return fail(ErrorCode::check_failed, "calls or copies are not in the list");
  }
  if (a.evaluation.peak_load > a.timing.load_limit) {
    return fail(ErrorCode::check_failed, "the load exceeds its limit");
  }
  return {};
}

bool Lowering::place_on_device(Attempt& a) {
  const bool placed =
      placer_.place_device({program_, a.strategy, evaluator_.expansion(), a.timeline}, 0,
                           a.limits[0], machine_.spaces[0].alignment, a.options.packing);
  refused_ = placer_.refused();
  free_footprint_ = placer_.free_footprint();
  excess_ = std::max<Bytes>(free_footprint_ - a.limits[0], 0);
  if (!placed) return false;
  a.arenas[0].bytes = placer_.footprint();
  a.result.packer = placer_.packer();
  a.result.added_waits = placer_.added_waits();
  return true;
}

/// On the host and in files.
bool Lowering::place_away(Attempt& a) {
  for (SpaceId s = machine_.host(); s < std::ssize(machine_.spaces); ++s) {
    Arena& arena = a.arenas[static_cast<std::size_t>(s)];
    if (!placer_.place_away({program_, a.strategy, evaluator_.expansion(), a.timeline}, s,
                            a.limits[static_cast<std::size_t>(s)], arena.alignment,
                            a.options.packing)) {
      return false;
    }
#ifndef NDEBUG
    invariant(placer_.verify().has_value(), "addresses away from the device do not clash");
#endif
    arena.bytes = placer_.footprint();
    a.result.added_waits += placer_.added_waits();
  }
  return true;
}

Result<void> Lowering::verify_addresses(const Attempt&) { return placer_.verify(); }

bool Lowering::emit(Attempt& a) {
  if (a.result.added_waits > 0) {
    ReplayScratch scratch;
    a.result.iteration_time = replay(a.timeline.steps, evaluator_.streams().compute, scratch);
  }
  a.result.plan = emit_plan({program_, a.strategy, evaluator_.expansion(), a.timeline.instances,
                             a.timeline.steps, placer_.offsets(), evaluator_.streams(), a.arenas});
  // Entry and exit may need more than the iterations.
  for (std::size_t s = 0; s < a.limits.size(); ++s) {
    if (a.result.plan.arenas[s].bytes > a.limits[s]) return false;
  }
  a.result.steps = std::move(a.timeline.steps);
  return true;
}

Result<void> Lowering::verify_plan(const Attempt& a) {
  return check(program_, a.result.plan, check_limits(machine_, a.budget));
}

std::optional<Lowered> Lowering::attempt(const Strategy& strategy, const Budget& budget,
                                         const EvaluateOptions& timing,
                                         const LowerOptions& options) {
  excess_ = 0;
  free_footprint_ = 0;
  refused_.clear();
  Attempt a{strategy, budget, timing, options, {}, {}, {}, {}, {}};
  a.limits = space_budgets(machine_, budget);
  for (const Pass& pass : kPasses) {
    if (options.packing.give_up.requested()) return std::nullopt;
    const PassTimer timer(pass_times_, pass.name);
    if (!(this->*pass.run)(a)) return std::nullopt;
#ifndef NDEBUG
    invariant((this->*pass.verify)(a).has_value(), "what a pass of lowering made is sound");
#endif
  }
  return std::move(a.result);
}

Result<Lowered> Lowering::lower(const Strategy& strategy, const Budget& budget,
                                const LowerOptions& options) {
  pass_times_.clear();
  std::optional<Lowered> best;
  Bytes limit = options.load_limit > 0 ? options.load_limit : budget.device;
  LowerOptions placing = options;
  placing.packing.give_up = asked_to_give_up(options);
  for (int i = 0; i < options.attempts && limit > 0; ++i) {
    std::optional<Lowered> next =
        attempt(strategy, budget, {limit, options.prefetch, options.lead}, placing);
    if (!refused_.empty()) return fail(ErrorCode::bad_input, refused_);
    const bool lost_nothing = next && next->iteration_time == next->unplaced_time;
    if (next && next->iteration_time < placing.faster_than) {
      placing.faster_than = next->iteration_time;
      best = std::move(next);
    }
    // A tighter limit makes no timeline faster; without an excess nothing is known to tighten by.
    if (lost_nothing || excess_ == 0 || options.stop.requested()) break;
    limit -= excess_;
  }
  if (!best && options.allow_streaming && !give_up_.requested()) {
    best = stream(budget, options);
    if (!refused_.empty()) return fail(ErrorCode::bad_input, refused_);
  }
  if (!best && give_up_.requested()) {
    return fail(ErrorCode::interrupted, "interrupted while planning");
  }
  if (!best) return fail(why_infeasible(strategy, budget, options));
  best->pass_times = pass_times_;
  best->plan.program = program_.name;
  best->plan.planner = strategy.planner;
  return std::move(*best);
}

Stop Lowering::asked_to_give_up(const LowerOptions& options) const {
  return [mine = give_up_, others = options.packing.give_up] {
    return mine.requested() || others.requested();
  };
}

/// The streaming schedule. Its load fits wherever any does. So do its addresses, unless bytes that
/// may not move lie between others: then they are searched for.
std::optional<Lowered> Lowering::stream(const Budget& budget, const LowerOptions& options) {
  constexpr int kRounds = 4;  // no clock: the same plan on any machine
  const Strategy streaming = everything_away(least_workspace_algorithms(program_));
  LowerOptions placing;
  placing.packing.give_up = give_up_;
  std::optional<Lowered> found = attempt(streaming, budget, {budget.device, false}, placing);
  if (!found && refused_.empty() && excess_ > 0) {
    LowerOptions searching;
    searching.packing = options.packing;
    searching.packing.give_up = asked_to_give_up(options);
    searching.packing.time = Nanos{0};
    searching.packing.rounds = kRounds;
    found = attempt(streaming, budget, {budget.device, false}, searching);
  }
  if (found) found->streaming = true;
  return found;
}

std::optional<SmallestBudget> Lowering::smallest_to_stream(const Budget& budget,
                                                           const LowerOptions& options) {
  SmallestBudget smallest = smallest_budget(program_, machine_.alignment());
  const Bytes of_last_call = free_footprint_;
  const auto streams = [&](Bytes device) {
    return stream({device, budget.host, budget.others}, options).has_value();
  };
  const auto enough = least_enough(smallest.bytes, kNoDeviceLimit, machine_.alignment(), streams);
  free_footprint_ = of_last_call;
  if (!enough) return std::nullopt;
  smallest.holes = *enough - smallest.bytes;
  smallest.bytes = *enough;
  return smallest;
}

SmallestBudget smallest_to_stream(const Program& program, const Machine& machine) {
  const SmallestBudget bound = smallest_budget(program, machine.alignment());
  const std::vector<Bytes> unmovable = unmovable_load(program, 1);
  const bool moves = std::ranges::all_of(unmovable, [](Bytes bytes) { return bytes == 0; });
  if (moves || !on_one_device(program) || !why_unplannable(program).empty()) return bound;
  return Lowering(program, machine).smallest_to_stream(no_limit()).value_or(bound);
}

Machine any_machine(Bytes alignment) {
  constexpr LinkSpeed kFast{1e12, Nanos{0}};
  Machine machine;
  machine.set_alignment(alignment);
  machine.set_links(kFast, kFast);
  return machine;
}

namespace {

/// Where the limit of the file alone is what does not let it fit.
std::optional<Bytes> enough_of_file(Lowering& lowering, const Machine& machine,
                                    const Strategy& strategy, const Budget& budget,
                                    const LowerOptions& options) {
  const SpaceId file = machine.away();
  if (!options.allow_streaming || !budget.others.contains(file)) return std::nullopt;
  Budget unlimited = budget;
  unlimited.others.erase(file);
  const auto without = lowering.lower(strategy, unlimited, options);
  if (!without) return std::nullopt;
  return without->plan.arenas[at(file)].bytes;
}

}  // namespace

Error Lowering::why_infeasible(const Strategy& strategy, const Budget& budget,
                               const LowerOptions& options) {
  const SmallestBudget smallest = smallest_budget(program_, machine_.alignment());
  Error error{ErrorCode::infeasible, "", std::nullopt};
  if (budget.device < smallest.bytes) {
    const SmallestBudget enough =
        smallest_to_stream({budget.device, 0, budget.others}, options).value_or(smallest);
    error.smallest_feasible = enough.bytes;
    error.message = fmt::format("budget {} B ({}) cannot be met: {}", budget.device,
                                format_bytes(budget.device), explain(enough, program_));
  } else if (options.allow_streaming && budget.host > 0) {
    Budget unlimited = budget;
    unlimited.host = 0;
    const auto without = lower(strategy, unlimited, options);
    if (!without) return without.error();
    error.smallest_feasible = without->plan.host_bytes();
    error.of_host = true;
    error.message = fmt::format(
        "host budget {} B ({}) is too small for what leaves the device at {} B: {} B ({}) are "
        "enough",
        budget.host, format_bytes(budget.host), budget.device, without->plan.host_bytes(),
        format_bytes_up(without->plan.host_bytes()));
  } else if (const auto enough = enough_of_file(*this, machine_, strategy, budget, options)) {
    const Bytes most = budget.others.at(machine_.away());
    error.of_host = true;  // not of the device
    error.message = fmt::format(
        "the file of at most {} B ({}) is too small for what leaves {} B of memory: {} B ({}) are "
        "enough",
        most, format_bytes(most), budget.device, *enough, format_bytes_up(*enough));
  } else {
    error.message = fmt::format("this strategy does not fit {} B ({})", budget.device,
                                format_bytes(budget.device));
    if (!options.allow_streaming) return error;
    // Only addresses can be what is missing.
    const auto least = smallest_to_stream(budget, options);
    if (!least) return error;
    error.smallest_feasible = least->bytes;
    error.message = fmt::format(
        "no addresses were found in {} B ({}), which the tensors of each op alone would fit: bytes "
        "that are pinned, stay taken or are at home lie in between; {} B ({}) are enough",
        budget.device, format_bytes(budget.device), *error.smallest_feasible,
        format_bytes_up(*error.smallest_feasible));
  }
  return error;
}

}  // namespace tidepool
