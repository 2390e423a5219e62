#include "planning/host_over_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/at.h"
#include "base/quantity.h"
#include "lower/join_tiers.h"
#include "lower/time_plan.h"
#include "planners/autoswap/autoswap.h"
#include "planners/tide/tide.h"
#include "planning/make_plan.h"

namespace tidepool {
namespace {

/// A search for better copies with the file takes no longer than this.
constexpr Nanos kLongestSearch{std::chrono::seconds(2)};

class HostOverFile {
 public:
  HostOverFile(const Program& program, const Lowered& upper, const Machine& machine,
               const Budget& budget, const PlannerOptions& options)
      : program_(program),
        upper_(upper),
        machine_(machine),
        limits_(space_budgets(machine, budget)),
        pair_(host_and_file(machine)),
        options_(options) {
    pair_budget_.device = limits_[at(machine.host())];
    const Bytes file = limits_[at(machine.behind_host())];
    pair_budget_.host = file == kNoSpaceLimit ? 0 : file;
    options_.observations = {};
    options_.progress = nullptr;
    options_.algorithms = AlgorithmPolicy::least_workspace;
    options_.may = {false, false, true, false, true};
  }

  Result<Lowered> plan() {
    // Where only entry and exit pass through the host, no file makes that less.
    if (!iterations_use_host()) {
      return fail(too_small(machine_.host(), upper_.plan.host_bytes()));
    }
    auto host = host_program(program_, upper_.plan, machine_);
    if (!host) return fail(host.error());
    host_ = &*host;
    auto best = plan_by(*make_autoswap());
    if (!best || best->iteration_time <= upper_.iteration_time || options_.stop.requested()) {
      return best;
    }
    options_.time_limit = std::min(options_.time_limit, kLongestSearch);
    auto other = plan_by(*make_tide());
    return other && other->iteration_time < best->iteration_time ? std::move(other)
                                                                 : std::move(best);
  }

 private:
  [[nodiscard]] bool iterations_use_host() const {
    const auto on_host = [&](PlacementId id) {
      return id != kNone && upper_.plan.kind_of(id) == SpaceKind::host;
    };
    return std::ranges::any_of(upper_.plan.steady.instructions, [&](const Instruction& x) {
      return on_host(x.from) || on_host(x.to) || std::ranges::any_of(x.operands, on_host);
    });
  }

  Result<Lowered> plan_by(Planner& planner) {
    FixedWorkload workload(host_->program);
    const auto lower = make_plan(planner, workload, pair_, pair_budget_, options_);
    if (!lower) return fail(in_terms_of_tiers(lower.error()));
    auto plan = join_tiers({program_, upper_.plan, *host_, lower->lowered.plan, machine_});
    if (!plan) return fail(plan.error());
    for (const SpaceId s : {machine_.host(), machine_.behind_host()}) {
      const Bytes needed = plan->arenas[at(s)].bytes;
      if (needed > limits_[at(s)]) return fail(too_small(s, needed));
    }
    Lowered whole = upper_;
    whole.plan = std::move(*plan);
    TimedPlan timed = time_plan(program_, whole.plan, machine_);
    whole.steps = std::move(timed.steps);
    whole.iteration_time = timed.iteration_time;
    return whole;
  }

  [[nodiscard]] Error too_small(SpaceId space, Bytes enough) const {
    const bool host = space == machine_.host();
    Error error{
        ErrorCode::infeasible,
        fmt::format("{} budget {} B ({}) is too small for what leaves the device{}: {} B "
                    "({}) are enough",
                    space_name(machine_, space), limits_[at(space)],
                    format_bytes(limits_[at(space)]), host ? ", even with a file behind it" : "",
                    enough, format_bytes_up(enough)),
        std::nullopt, host};
    if (host) error.smallest_feasible = enough;
    return error;
  }

  /// For the second planning the host is a device.
  [[nodiscard]] Error in_terms_of_tiers(Error error) const {
    if (error.code != ErrorCode::infeasible || !error.smallest_feasible) return error;
    if (error.of_host) return too_small(machine_.behind_host(), *error.smallest_feasible);
    Bytes enough = *error.smallest_feasible;
    // Each value passes through the host before the first iteration and after the last.
    for (const Tensor& t : program_.tensors) {
      if (t.persistent) enough = std::max(enough, align_up(t.bytes, pair_.alignment()));
    }
    return too_small(machine_.host(), enough);
  }

  const Program& program_;
  const Lowered& upper_;
  const Machine& machine_;
  std::vector<Bytes> limits_;  ///< by space
  Machine pair_;
  Budget pair_budget_;
  PlannerOptions options_;
  const HostProgram* host_ = nullptr;
};

}  // namespace

Result<Lowered> with_host_over_file(const Program& program, const Lowered& upper,
                                    const Machine& machine, const Budget& budget,
                                    const PlannerOptions& options) {
  return HostOverFile(program, upper, machine, budget, options).plan();
}

}  // namespace tidepool
