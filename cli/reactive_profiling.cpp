#include "reactive_profiling.h"

#include <fmt/format.h>

#include <algorithm>

#include "algorithm_choice.h"
#include "base/quantity.h"
#include "ir/load_profile.h"
#include "prompt_end.h"
#include "runtime/profiler.h"
#include "runtime/reactive.h"

namespace tidepool::cli {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

bool fits(const Program& program, OpId op, int algorithm, const Budget& budget, Bytes alignment) {
  return working_set(program, op, alignment, algorithm) <= budget.device;
}

/// Returns how many algorithms could not be measured.
int fill_in_unmeasured(Program& program, const Budget& budget, Bytes alignment) {
  int unmeasured = 0;
  for (OpId id = 0; id < static_cast<OpId>(program.ops.size()); ++id) {
    auto& algorithms = program.ops[at(id)].algorithms;
    Nanos slowest{0};
    for (const Algorithm& a : algorithms) slowest = std::max(slowest, a.time);
    for (std::size_t a = 0; a < algorithms.size(); ++a) {
      if (fits(program, id, static_cast<int>(a), budget, alignment)) continue;
      algorithms[a].time = slowest;
      ++unmeasured;
    }
  }
  return unmeasured;
}

Result<Bytes> run_variant(Job& job, const Machine& machine, const Budget& budget,
                          const std::vector<std::int32_t>& algorithms, int iterations,
                          const std::function<void(int)>& tell) {
  auto runner = job.make_runner();
  if (!runner) return fail(runner.error());
  const std::unique_ptr<Device> device = job.make_device(machine);
  const Bytes enough = Reactive::enough_host_bytes(job.program(), device->alignment());
  const Bytes host = budget.host > 0 ? std::min(budget.host, enough) : enough;
  const PromptEnd prompt;
  try {
    Reactive reactive(job.program(), algorithms, {budget.device, host}, *device, **runner);
    reactive.enter();
    for (int i = 0; i <= iterations && !interrupted(); ++i) {
      tell(i);
      reactive.run(1, interrupted);
    }
    if (interrupted()) return fail(ErrorCode::interrupted, "interrupted while profiling");
    auto timings = reactive.timings();
    timings.erase(timings.begin());  // cold caches, first touches
    apply_op_timings(algorithms, timings, job.program());
    return reactive.arena_peak();
  } catch (const HostArenaFull& full) {
    return fail(
        Error{ErrorCode::infeasible,
              fmt::format("--host-budget {} B ({}) is not enough for profiling inside {} "
                          "of device memory: {}; {} B ({}) are enough",
                          budget.host, format_bytes(budget.host), format_bytes(budget.device),
                          full.what(), enough, format_bytes_up(enough)),
              enough});
  }
}

}  // namespace

Result<Measurement> measure_reactively(Job& job, const Machine& machine, const Budget& budget,
                                       int iterations, bool all, ProgressSink& progress) {
  const auto variants = variants_to_measure(job.program(), job.policy(), all);
  Measurement how{.iterations = iterations,
                  .all_algorithms = variants.size() > 1 || all,
                  .reactive_budget = budget.device};
  const double runs = static_cast<double>(variants.size()) * (iterations + 1);
  for (std::size_t v = 0; v < variants.size(); ++v) {
    const auto algorithms = fitting(job.program(), variants[v], budget, machine.alignment());
    auto used = run_variant(job, machine, budget, algorithms, iterations, [&](int i) {
      const double done = static_cast<double>(v) * (iterations + 1) + i;
      progress.update(done / runs,
                      fmt::format("profiling {} inside {}: iteration {}/{}", job.program().name,
                                  format_bytes(budget.device), i, iterations));
    });
    if (!used) return fail(used.error());
    how.arena_peak = std::max(how.arena_peak, *used);
  }
  if (how.all_algorithms) {
    how.unmeasured = fill_in_unmeasured(job.program(), budget, machine.alignment());
  }
  return how;
}

}  // namespace tidepool::cli
