#include "planning/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/quantity.h"
#include "bound/any_algorithms.h"
#include "ir/load_profile.h"
#include "planning/algorithm_choice.h"
#include "planning/load_file.h"
#include "sim/simulate.h"

namespace tidepool {
namespace {

Result<Bounds> bounds_in(const Program& program, const Machine& machine,
                         const AlgorithmChoice& algorithms, const AlgorithmChoices& choices,
                         Nanos unlimited, const Budget& budget, Nanos time_limit,
                         Observer& observer) {
  const auto start = std::chrono::steady_clock::now();
  const auto spent = [&] {
    return std::chrono::duration_cast<Nanos>(std::chrono::steady_clock::now() - start);
  };
  const AccessIndex index(program);
  Bounds b;
  b.budget = budget;
  b.peak = load_profile(program, index, machine.alignment(), algorithms).peak;
  const FluidOptions options{time_limit, observer.stop()};
  const auto solving = [&](int number, const char* what) {
    const auto show = [&observer, number, what] {
      observer.update((number - 1) / 3.0, fmt::format("linear program {} of 3: {}", number, what));
    };
    show();
    // Asked by this thread, again and again: in a log there is a line now and then.
    const Nanos left = std::max(time_limit - spent(), Nanos{0});
    return FluidOptions{left / (4 - number), [&observer, show] {
                          show();
                          return observer.stop_requested();
                        }};
  };
  b.overhead = overhead_bound(program, machine, algorithms, unlimited, budget,
                              solving(1, "swapping alone"), false, choices);
  b.recomputing = overhead_bound(program, machine, algorithms, unlimited, budget,
                                 solving(2, "with recomputation"), true, choices);
  const FluidBound& fluid = b.overhead.fluid;
  if (observer.stop_requested()) return fail(ErrorCode::interrupted, "interrupted while solving");
  b.unknown = why_no_bound(fluid, options);
  if (b.unknown.empty()) b.unknown = why_no_bound(b.recomputing.fluid, options);
  if (!fluid.feasible && !fluid.stopped && fluid.refused.empty()) {
    return fail(ErrorCode::infeasible,
                fmt::format("no swap schedule with these algorithms fits {} B ({}){}",
                            budget.device, format_bytes(budget.device),
                            budget.host == 0
                                ? std::string()
                                : fmt::format(" with {} of host memory: try a larger `host_budget`",
                                              format_bytes(budget.host))));
  }
  b.least_load = fluid_least_load(
      {program, index, machine, algorithms, false, budget.host, choices},
      b.overhead.unlimited_here - b.overhead.compute, solving(3, "load without overhead"));
  if (observer.stop_requested()) return fail(ErrorCode::interrupted, "interrupted while solving");
  b.took = spent();
  return b;
}

}  // namespace

Result<Bounds> bounds_of(const Subject& subject, const BudgetSpec& spec, Nanos time_limit,
                         Observer& observer) {
  const Profile& profile = subject.profile;
  const PlanTerms& terms = subject.terms;
  const auto budget = subject.budget_of(spec);
  if (!budget) return fail(budget.error());
  const Nanos unlimited = subject.unlimited_time(profile.program, terms.best_algorithms(true));
  // Where planners may choose: of whatever choice.
  const Program program =
      terms.choose_algorithms ? with_best_algorithms(profile.program) : profile.program;
  AlgorithmChoices choices;
  if (terms.choose_algorithms) {
    choices = more_than_best(profile.program, profile.machine.alignment());
  }
  auto bounds = bounds_in(program, profile.machine, choose_algorithms(program, terms.algorithms),
                          choices, unlimited, *budget, time_limit, observer);
  if (!bounds) return fail(subject.of_whole(bounds.error()));
  for (Bytes* bytes : {&bounds->budget.device, &bounds->peak, &bounds->least_load.bytes}) {
    *bytes += subject.resident;
  }
  return bounds;
}

Result<Bounds> bounds_of(const SavedPlan& saved, Nanos time_limit, Observer& observer) {
  const PlanFile& file = saved.file;
  if (auto proof = prove(file); !proof) {
    return fail(proof.error().code, fmt::format("{}: {}", saved.path, proof.error().message));
  }
  auto bounds = bounds_in(file.program, file.machine, chosen_algorithms(file.program, file.plan),
                          {}, file.unlimited_time(), Budget{file.device_budget, file.host_budget},
                          time_limit, observer);
  if (!bounds) return bounds;
  bounds->not_covered = !first_runs_in_order(file.program, file.plan);
  if (bounds->not_covered || !bounds->unknown.empty()) return bounds;
  // Of the plan itself; what the file says of its time may be of another version, or edited.
  const Nanos time = long_run(file.program, file.plan, file.machine).iteration_time;
  const auto gap = bounds->recomputing.optimality_gap(time);
  if (!gap) return fail(gap.error());
  bounds->plan_time = time;
  bounds->gap = *gap;
  return bounds;
}

}  // namespace tidepool
