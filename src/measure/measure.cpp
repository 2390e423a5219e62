#include "measure/measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "ir/load_profile.h"
#include "measure/expected_memory.h"
#include "measure/measure_reactively.h"
#include "measure/profiling_task.h"
#include "planning/process_memory.h"
#include "runtime/executor.h"
#include "runtime/profiler.h"

namespace tidepool {
namespace {

/// `algorithm` of every op that has it, its least-workspace one otherwise.
AlgorithmChoice variant(const Program& program, int algorithm) {
  AlgorithmChoice choice = least_workspace_algorithms(program);
  for (std::size_t i = 0; i < choice.size(); ++i) {
    if (algorithm < static_cast<int>(program.ops[i].algorithms.size())) {
      choice[i] = static_cast<std::int32_t>(algorithm);
    }
  }
  return choice;
}

/// Of any op with any of the choices.
Bytes largest_working_set(const Program& program, const std::vector<AlgorithmChoice>& choices,
                          Bytes alignment) {
  Bytes most = 0;
  for (const AlgorithmChoice& algorithms : choices) {
    for (OpId op = 0; op < static_cast<OpId>(program.ops.size()); ++op) {
      most = std::max(most, working_set(program, op, alignment, algorithms[at(op)]));
    }
  }
  return most;
}

/// Where ops' times spread by more, others use the machine: then as many iterations are measured
/// once more, up to so many times in all.
constexpr double kBusy = 0.2;
constexpr int kMostTurns = 3;

/// `done`: variants before this one, of `all`.
Result<Bytes> measure_variant(Job& job, const Machine& machine, const ProfilingTask& task,
                              AlgorithmChoice algorithms, std::size_t done, std::size_t all,
                              Observer& observer) {
  const auto lowered = kept_plan(job.program(), machine, std::move(algorithms), task.budget);
  if (!lowered) return fail(ErrorCode::infeasible, "the budget is too small to keep everything");
  const NothingToLose scope(observer);
  auto runner = job.make_runner_of_one();
  if (!runner) return fail(runner.error());
  const std::unique_ptr<Device> device = job.make_device(machine);
  Executor executor(job.program(), lowered->plan, *device, **runner);
  executor.enter();
  executor.run(1, observer.stop());  // caches, first touches
  executor.record_timings();
  double spread = 1;
  for (int turn = 0; turn < kMostTurns && spread > kBusy; ++turn) {
    executor.run(task.iterations, observer.stop(), [&](std::int64_t i, Nanos) {
      const double share = std::min(static_cast<double>(i) / task.iterations, 1.0);
      observer.update(
          (static_cast<double>(done) + share) / static_cast<double>(all),
          fmt::format("profiling {}: {}/{}", job.program().name, i, (turn + 1) * task.iterations));
    });
    if (observer.stop_requested()) {
      return fail(ErrorCode::interrupted, "interrupted while profiling");
    }
    spread = apply_timings(lowered->plan, executor.timings(), job.program());
  }
  return executor.arena_peak();
}

}  // namespace

std::vector<AlgorithmChoice> variants_to_measure(const Program& program, AlgorithmPolicy policy,
                                                 bool all) {
  if (!all && policy == AlgorithmPolicy::least_workspace)
    return {least_workspace_algorithms(program)};
  std::size_t count = 1;
  for (const Op& op : program.ops) count = std::max(count, op.algorithms.size());
  if (count == 1) return {least_workspace_algorithms(program)};
  std::vector<AlgorithmChoice> variants;
  for (std::size_t v = 0; v < count; ++v) {
    variants.push_back(variant(program, static_cast<int>(v)));
  }
  return variants;
}

std::optional<Lowered> kept_plan(const Program& program, const Machine& machine,
                                 AlgorithmChoice algorithms, const Budget& budget) {
  Lowering lowering(program, machine);
  const Strategy strategy = keep_everything(program, lowering.index(), std::move(algorithms));
  LowerOptions options;
  options.allow_streaming = false;
  auto lowered = lowering.lower(strategy, budget, options);
  if (!lowered) return std::nullopt;
  return std::move(*lowered);
}

Measurement planned_measurement(const Job& job, const Machine& machine, const ProfilingTask& task) {
  Measurement how{
      .iterations = task.iterations, .all_algorithms = task.all_algorithms, .fake = task.fake};
  const auto variants =
      variants_to_measure(job.program(), algorithms_of(job.spec()), task.all_algorithms);
  if (task.fake) {
    how.reactive_budget = limited(task.budget)
                              ? task.budget.device
                              : largest_working_set(job.program(), variants, machine.alignment());
    return how;
  }
  const bool all_fit =
      std::all_of(variants.begin(), variants.end(), [&](const AlgorithmChoice& algorithms) {
        return kept_plan(job.program(), machine, algorithms, task.budget).has_value();
      });
  if (!all_fit) how.reactive_budget = task.budget.device;
  return how;
}

namespace {

/// In the RAM of the process: less where code and heap have grown since the budget was made, as
/// they do while other sizes of rounds are measured.
ProfilingTask in_what_is_left(const Job& job, const Machine& machine, ProfilingTask task) {
  const auto now = expected_memory(job, task.memory);
  if (!now) return task;
  const Bytes alignment = machine.alignment();
  const Bytes least = smallest_budget(job.program(), alignment).bytes;
  task.budget.device = std::min(task.budget.device, std::max(now->largest_arena(alignment), least));
  return task;
}

}  // namespace

Result<Measurement> measure(Job& job, const Machine& machine, const ProfilingTask& asked,
                            const Measurement& planned, Observer& observer) {
  ProfilingTask task = asked;
  Measurement how = planned;
  if (asked.memory > 0) {
    task = in_what_is_left(job, machine, asked);
    if (task.budget.device < asked.budget.device) how = planned_measurement(job, machine, task);
  }
  if (how.reactive_budget > 0) {
    ProfilingTask inside = task;
    inside.budget.device = how.reactive_budget;
    return measure_reactively(job, machine, inside, observer);
  }
  const auto variants =
      variants_to_measure(job.program(), algorithms_of(job.spec()), task.all_algorithms);
  Measurement done = how;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    auto used = measure_variant(job, machine, task, variants[v], v, variants.size(), observer);
    if (!used) return fail(used.error());
    done.arena_peak = std::max(done.arena_peak, *used);
  }
  return done;
}

}  // namespace tidepool
