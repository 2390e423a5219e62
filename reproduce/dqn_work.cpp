#include "dqn_work.h"

#include "ir/load_profile.h"
#include "lower/overhead.h"
#include "nn/models/model.h"
#include "nn/training_program.h"
#include "planners/registry.h"
#include "planning/algorithm_choice.h"
#include "planning/make_plan.h"

namespace tidepool::reproduce {

const std::vector<DqnSystem>& dqn_systems() {
  static const std::vector<DqnSystem> systems{
      {"dqn_swap", {"dqn-swap"}},
      {"dqn", {"dqn"}},
      {"auto", {"auto"}},
      {"memonger", {"memonger"}},
      {"superneurons", {"superneurons", "superneurons-cache", "superneurons-recompute"}},
      {"tflms", {"tflms"}}};
  return systems;
}

Result<DqnWork> dqn_work(const DqnWorkload& workload) {
  DqnWork work;
  work.workload = workload;
  auto machine = find_machine(kDqnMachine);
  if (!machine) return fail(machine.error());
  work.machine = std::move(*machine);
  const auto graph = nn::build_model(workload.model);
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = workload.batch;
  // K-means has no activations that storage could keep apart.
  options.storage = graph->clusters > 0 ? nn::Storage::in_place : nn::Storage::separate;
  auto training = nn::build_training_program(*graph, options, nn::preset_kernels());
  if (!training) return fail(training.error());
  apply_cost_model(work.machine, training->program);
  work.program = restrict_to(fastest_algorithms(training->program), training->program);
  const auto algorithms = least_workspace_algorithms(work.program);  // the only ones
  const Bytes alignment = work.machine.alignment();
  work.peak = load_profile(work.program, AccessIndex(work.program), alignment, algorithms).peak;
  work.smallest = smallest_budget(work.program, alignment).bytes;
  work.unlimited = kept_time(work.program, work.machine, algorithms);
  return work;
}

Result<std::optional<DqnPoint>> dqn_point(const DqnWork& work, const std::string& planner,
                                          Bytes budget, const PlannerOptions& options) {
  auto made = make_planner(planner);
  if (!made) return fail(made.error());
  FixedWorkload workload(work.program);
  const auto planned = make_plan(**made, workload, work.machine, {budget, 0}, options);
  if (!planned && planned.error().code == ErrorCode::infeasible) return std::nullopt;
  if (!planned) return fail(planned.error());
  const Lowered& lowered = planned->lowered;
  if (lowered.streaming || (planned->learning && planned->learning->fallback)) return std::nullopt;
  DqnPoint point;
  point.planner = planner;
  point.overhead = overhead(lowered.iteration_time, work.unlimited);
  point.utilisation = to_seconds(lowered.compute_time) / to_seconds(lowered.iteration_time);
  point.footprint = lowered.plan.device_bytes();
  point.plan_time = planned->plan_time;
  return point;
}

}  // namespace tidepool::reproduce
