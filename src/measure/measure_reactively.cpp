#include "measure/measure_reactively.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "base/quantity.h"
#include "ir/load_profile.h"
#include "measure/dry_run.h"
#include "measure/measure.h"
#include "measure/profiling_task.h"
#include "runtime/profiler.h"

namespace tidepool {
namespace {

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

/// What each run of the task runs: an algorithm that does not fit gives way to one that does.
std::vector<AlgorithmChoice> variants_inside(const Job& job, const ProfilingTask& task,
                                             Bytes alignment) {
  auto variants =
      variants_to_measure(job.program(), algorithms_of(job.spec()), task.all_algorithms);
  for (AlgorithmChoice& variant : variants) {
    variant = fitting(job.program(), std::move(variant), task.budget, alignment);
  }
  return variants;
}

/// Of the host, before a file behind it, in whole blocks of that.
Bytes least_before_file(const Job& job, Bytes alignment) {
  const Bytes least =
      Reactive::enough_host_bytes(job.program(), alignment, {}, Away::host_then_file);
  return align_up(least, SpillOptions::kAlignment);
}

Error host_budget_too_small(const Job& job, const ProfilingTask& task, Bytes alignment,
                            const char* why) {
  const Budget& budget = task.budget;
  const bool tier = job.spec().device.has_file_tier();
  Bytes least = tier ? least_before_file(job, alignment) : 0;
  for (const AlgorithmChoice& algorithms : variants_inside(job, task, alignment)) {
    if (tier) break;
    least = std::max(
        least, least_host_bytes(job.program(), algorithms, budget.device, budget.host, alignment));
  }
  Error error{
      ErrorCode::infeasible,
      fmt::format("`host_budget` {} B ({}) is not enough for profiling inside {} of device "
                  "memory{}: {}; {} B ({}) are enough, and the least that are",
                  budget.host, format_bytes(budget.host), format_bytes(budget.device),
                  tier ? ", even with a file behind it" : "", why, least, format_bytes_up(least)),
      least};
  error.of_host = true;
  return error;
}

/// Intermediate numbers, of the device alone. Indices keep their values: pooling, labels.
std::vector<char> may_be_made_up(const Job& job) {
  const Program& program = job.program();
  std::vector<char> made_up(program.tensors.size(), 0);
  for (std::size_t t = 0; t < made_up.size(); ++t) {
    const bool number = job.training().tensors[t].type == nn::ElementType::f32;
    made_up[t] = number && !program.tensors[t].persistent ? 1 : 0;
  }
  for (const Op& op : program.ops) {
    if (op.place != OpPlace::host) continue;
    for (const Access& a : op.accesses) made_up[at(a.tensor)] = 0;
  }
  return made_up;
}

/// Copies of a fake profiling only bring what ops run on: nobody times them.
Machine with_instant_links(Machine machine) {
  machine.to_host() = machine.to_device() = LinkSpeed{0, Nanos{0}};
  std::ranges::fill(machine.buses, 0);
  return machine;
}

/// As many host bytes as the run takes, or as it may have.
Bytes host_bytes(const Job& job, const AlgorithmChoice& algorithms, const Budget& budget,
                 std::span<const char> made_up, Bytes alignment) {
  const Bytes enough = Reactive::enough_host_bytes(job.program(), alignment, made_up);
  if (budget.host > 0) return std::min(budget.host, enough);
  if (!made_up.empty()) return enough;
  return ample_host_bytes(job.program(), algorithms, budget.device, alignment);
}

/// As much of it as the machine has, at least a block: without a file the host would be used.
Bytes profiling_file(const Machine& machine, Bytes enough) {
  const Bytes most = machine.spaces.back().bytes;
  const Bytes alignment = machine.spaces.back().alignment;
  return most == 0 ? enough : std::clamp(most / alignment * alignment, alignment, enough);
}

/// Behind the host, where that alone is too small.
ReactiveBudget budget_over_host(const Job& job, const Machine& machine,
                                const AlgorithmChoice& algorithms, ReactiveBudget without) {
  const Bytes alignment = machine.alignment();
  if (runs_on_demand(job.program(), algorithms, without, alignment)) return without;
  constexpr Bytes kBlock = SpillOptions::kAlignment;
  const Bytes enough =
      Reactive::enough_file_bytes(job.program(), alignment, {}, Away::host_then_file);
  return {without.device, without.host / kBlock * kBlock, profiling_file(machine, enough), true};
}

/// Beside a file for what leaves the device the host has only what its ops touch.
ReactiveBudget reactive_budget(const Job& job, const Machine& machine,
                               const AlgorithmChoice& algorithms, const Budget& budget,
                               std::span<const char> made_up) {
  const Bytes alignment = machine.alignment();
  const bool file = machine.spaces.back().kind == SpaceKind::file;
  if (!file || machine.behind_host() != kNone) {
    const Bytes host = host_bytes(job, algorithms, budget, made_up, alignment);
    const ReactiveBudget without{budget.device, host};
    return file && made_up.empty() ? budget_over_host(job, machine, algorithms, without) : without;
  }
  return {budget.device, Reactive::enough_host_bytes(job.program(), alignment, made_up, Away::file),
          profiling_file(machine, Reactive::enough_file_bytes(job.program(), alignment, made_up))};
}

Error file_too_small(const Job& job, Bytes device, Bytes most, Bytes enough, const char* why) {
  const SpillOptions& file = job.spec().device.file();
  Error error{
      ErrorCode::infeasible,
      fmt::format("the disk, or what {} leaves of it, is too small for profiling inside {} of "
                  "memory: {}; the file may have {} B ({}), {} B ({}) are enough",
                  file.limit_name(), format_bytes(device), why, most, format_bytes(most), enough,
                  format_bytes_up(enough)),
      std::nullopt, true};
  if (file.limit == 0) error.message += fmt::format("; {} says how much of it", file.limit_name());
  return error;
}

Error host_budget_too_small_for_fake(const Budget& budget, Bytes enough, const char* why) {
  return {ErrorCode::infeasible,
          fmt::format("`host_budget` {} B ({}) is not enough for a fake profiling: {}; {} B ({}) "
                      "are enough",
                      budget.host, format_bytes(budget.host), why, enough, format_bytes_up(enough)),
          enough};
}

Result<Bytes> run_variant(Job& job, const Machine& machine, const ProfilingTask& task,
                          const AlgorithmChoice& algorithms, Observer& observer,
                          const std::function<void(int)>& tell) {
  const Budget& budget = task.budget;
  auto runner = job.make_runner_of_one();
  if (!runner) return fail(runner.error());
  const std::unique_ptr<Device> device =
      job.make_device(task.fake ? with_instant_links(machine) : machine);
  const Bytes alignment = device->alignment();
  const auto made_up = task.fake ? may_be_made_up(job) : std::vector<char>{};
  const ReactiveBudget memory = reactive_budget(job, machine, algorithms, budget, made_up);
  const NothingToLose scope(observer);
  try {
    Reactive reactive(job.program(), algorithms, memory, *device, **runner, made_up);
    reactive.enter();
    for (int i = 0; i <= task.iterations && !observer.stop_requested(); ++i) {
      tell(i);
      reactive.run(1, observer.stop());
    }
    if (observer.stop_requested()) {
      return fail(ErrorCode::interrupted, "interrupted while profiling");
    }
    auto timings = reactive.timings();
    timings.erase(timings.begin());  // cold caches, first touches
    apply_op_timings(algorithms, timings, job.program());
    return reactive.arena_peak();
  } catch (const FileFull& full) {
    const Bytes enough =
        Reactive::enough_file_bytes(job.program(), alignment, made_up, memory.away());
    return fail(file_too_small(job, budget.device, memory.file, enough, full.what()));
  } catch (const HostArenaFull& full) {
    if (task.fake) {
      const Bytes enough = Reactive::enough_host_bytes(job.program(), alignment, made_up);
      return fail(host_budget_too_small_for_fake(budget, enough, full.what()));
    }
    return fail(host_budget_too_small(job, task, alignment, full.what()));
  }
}

}  // namespace

Result<Measurement> measure_reactively(Job& job, const Machine& machine, const ProfilingTask& task,
                                       Observer& observer) {
  const auto variants = variants_inside(job, task, machine.alignment());
  Measurement how{.iterations = task.iterations,
                  .all_algorithms = variants.size() > 1 || task.all_algorithms,
                  .reactive_budget = task.budget.device,
                  .fake = task.fake};
  const double runs = static_cast<double>(variants.size()) * (task.iterations + 1);
  for (std::size_t v = 0; v < variants.size(); ++v) {
    auto used = run_variant(job, machine, task, variants[v], observer, [&](int i) {
      const double done = static_cast<double>(v) * (task.iterations + 1) + i;
      observer.update(
          done / runs,
          fmt::format("{}profiling {} inside {}: {}/{}", task.fake ? "fake " : "",
                      job.program().name, format_bytes(task.budget.device), i, task.iterations));
    });
    if (!used) return fail(used.error());
    how.arena_peak = std::max(how.arena_peak, *used);
  }
  if (how.all_algorithms) {
    how.unmeasured = fill_in_unmeasured(job.program(), task.budget, machine.alignment());
  }
  return how;
}

}  // namespace tidepool
