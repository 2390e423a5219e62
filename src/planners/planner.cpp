#include "planners/planner.h"

#include <fmt/format.h>

#include <chrono>

#include "check/check.h"
#include "ir/load_profile.h"

namespace tidepool {

Result<const Program*> FixedWorkload::program(std::int64_t sub_batch) {
  if (sub_batch != program_.sub_batch) {
    return fail(ErrorCode::usage,
                fmt::format("workload '{}' has one size, rounds of {} samples, not {}",
                            program_.name, program_.sub_batch, sub_batch));
  }
  return &program_;
}

std::vector<std::int32_t> choose_algorithms(const Program& program, AlgorithmPolicy policy) {
  return policy == AlgorithmPolicy::fastest ? fastest_algorithms(program)
                                            : least_workspace_algorithms(program);
}

Result<Planned> make_plan(Planner& planner, Workload& workload, const Machine& machine,
                          const Budget& budget, const PlannerOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto program = workload.program(workload.sub_batch());
  if (!program) return fail(program.error());
  if (auto times = validate_times(**program, machine); !times) return fail(times.error());
  const auto start = Clock::now();
  Lowering lowering(**program, machine);
  auto output = planner.plan(workload, lowering, budget, options);
  if (!output) return fail(output.error());
  if (!output->lowered) {
    auto lowered = lowering.lower(output->strategy, budget);
    if (!lowered) return fail(lowered.error());
    output->lowered = std::move(*lowered);
  }
  Planned planned;
  planned.lowered = std::move(*output->lowered);
  planned.notes = std::move(output->notes);
  const auto lowered_at = Clock::now();
  if (auto proof = check(**program, planned.lowered.plan, check_limits(machine, budget)); !proof) {
    return fail(proof.error());
  }
  planned.plan_time = lowered_at - start;
  planned.check_time = Clock::now() - lowered_at;
  return planned;
}

}  // namespace tidepool
