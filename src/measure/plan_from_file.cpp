#include "measure/plan_from_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/at.h"
#include "base/counted.h"
#include "base/quantity.h"
#include "check/check.h"
#include "job/job_spec.h"
#include "planning/algorithm_choice.h"
#include "planning/load_file.h"
#include "planning/planning_spec.h"
#include "planning/same_job.h"
#include "sim/simulate.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

/// Names the space of which the plan needs more than there is.
Result<void> check_sizes(const std::string& path, const Plan& plan, const Machine& machine,
                         const Budget& budget) {
  const std::vector<Bytes> given = space_budgets(machine, budget);
  // Where the plan has other spaces than the machine, the proof says so.
  for (std::size_t s = 0; s < std::min(given.size(), plan.arenas.size()); ++s) {
    const Bytes needed = plan.arenas[s].bytes;
    if (needed <= given[s]) continue;
    return fail(Error{
        ErrorCode::infeasible,
        fmt::format("{}: the plan needs {} B ({}) of {} memory, the budget is {} B ({})", path,
                    needed, format_bytes_up(needed), space_name(machine, static_cast<SpaceId>(s)),
                    given[s], format_bytes(given[s])),
        needed});
  }
  return {};
}

/// Refuses a file of a machine with another place for what leaves memory.
Result<void> check_files(const std::string& path, const Machine& of_plan,
                         const DeviceSpec& device) {
  const auto refuse = [&](bool with, const char* behind) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: was made {} a file behind {}, this training has {}", path,
                            with ? "with" : "without", behind, with ? "none" : "one"));
  };
  const bool tier = of_plan.behind_host() != kNone;
  const bool spills = !tier && of_plan.spaces.back().kind == SpaceKind::file;
  if (tier != device.has_file_tier()) return refuse(tier, "the host");
  if (spills != device.spills()) return refuse(spills, "memory");
  return {};
}

/// Refuses a file of another number of devices, device or program.
Result<void> check_job(const std::string& path, const PlanFile& file, const Job& job) {
  const std::int32_t devices = file.machine.devices();
  if (devices != job.spec().devices) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: is a plan for {}, this training has {}", path,
                            counted(devices, "device"), job.spec().devices));
  }
  if (auto same = check_fingerprint(path, file.fingerprint, job.fingerprint()); !same) return same;
  if (auto same = check_files(path, file.machine, job.spec().device); !same) return same;
  return check_program(path, file.program, job.whole().program);
}

}  // namespace

Result<BudgetSpec> budget_of_plan(const BudgetSpec& given, const std::string& path,
                                  const Job& job) {
  const auto file = load_plan(path);
  if (!file) return fail(file.error());
  // What it was planned for means nothing to another job.
  if (auto same = check_job(path, *file, job); !same) return fail(same.error());
  BudgetSpec budget = given;
  if (!budget.limited()) budget.device = {.bytes = file->device_budget};
  if (budget.host == 0) budget.host = file->host_budget;
  return budget;
}

Result<ObtainedPlan> plan_from_file(const std::string& path, const Profile& subject,
                                    const Budget& budget) {
  const auto start = std::chrono::steady_clock::now();
  auto file = load_plan(path);
  if (!file) return fail(file.error());
  const auto read = std::chrono::steady_clock::now();
  if (auto same = check_fingerprint(path, file->fingerprint, subject.fingerprint); !same) {
    return fail(same.error());
  }
  if (auto same = check_program(path, file->program, subject.program); !same) {
    return fail(same.error());
  }
  if (auto fits = check_sizes(path, file->plan, subject.machine, budget); !fits)
    return fail(fits.error());
  // Against the machine here, on which it runs, and that of the file, on which it is timed.
  auto proof = check(subject.program, file->plan, check_limits(subject.machine, budget));
  if (proof) proof = check(file->program, file->plan, check_limits(file->machine, budget));
  if (!proof) return fail(proof.error().code, fmt::format("{}: {}", path, proof.error().message));
  ObtainedPlan plan;
  plan.from = "file";
  plan.planned.lowered.plan = std::move(file->plan);
  plan.planned.lowered.strategy = std::move(file->strategy);
  plan.planned.plan_time = read - start;
  plan.planned.check_time = std::chrono::steady_clock::now() - read;
  // What the file says of the plan may be of another version, or edited.
  Lowered& lowered = plan.planned.lowered;
  lowered.strategy.algorithms = chosen_algorithms(file->program, lowered.plan);
  lowered.iteration_time = long_run(file->program, lowered.plan, file->machine).iteration_time;
  lowered.compute_time = totals_of(file->program, lowered.plan).compute_time;
  plan.profile = {file->fingerprint, std::move(file->program), std::move(file->machine),
                  file->fake};
  return plan;
}

namespace {

/// Whether every device runs the algorithms of the part, which comparisons and checkpoints go by.
bool same_algorithms(const Program& program, const Plan& plan, const Replication& replication,
                     const AlgorithmChoice& part) {
  const AlgorithmChoice whole = chosen_algorithms(program, plan);
  return std::ranges::all_of(replication.ops, [&](const std::vector<OpId>& ops) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!replication.is_shared(static_cast<OpId>(i)) && whole[at(ops[i])] != part[i])
        return false;
    }
    return true;
  });
}

/// Both plans of the file: `program` has the part's times.
Result<void> prove_both(const PlanFile& file, const Job& job, const Program& program,
                        const Machine& machine, const Budget& budget) {
  auto proof = check(job.whole().program, file.plan, check_limits(machine, budget));
  if (proof) proof = check(file.program, file.plan, check_limits(file.machine, budget));
  if (!proof) return proof;
  const Plan& part = *file.part;
  const Machine one = one_of_devices(file.machine);
  proof = check(program, part, check_limits(one, {part.device_bytes(), part.host_bytes(), {}}));
  if (!proof) return proof;
  if (same_algorithms(file.program, file.plan, job.parallel()->replication,
                      chosen_algorithms(program, part))) {
    return {};
  }
  return fail(ErrorCode::bad_input, "devices run other algorithms than the plan of their part");
}

}  // namespace

Result<ObtainedParallelPlan> parallel_plan_from_file(const std::string& path, const Job& job,
                                                     const Machine& machine, const Budget& budget) {
  const auto start = Clock::now();
  auto file = load_plan(path);
  if (!file) return fail(file.error());
  const auto read = Clock::now();
  if (auto same = check_job(path, *file, job); !same) return fail(same.error());
  if (!file->part) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: field 'part': missing, the plan of one device's part", path));
  }
  if (auto fits = check_sizes(path, file->plan, machine, budget); !fits) return fail(fits.error());
  Program program = job.program();
  give_times(file->program, job.parallel()->replication, program);
  if (auto proof = prove_both(*file, job, program, machine, budget); !proof) {
    return fail(proof.error().code, fmt::format("{}: {}", path, proof.error().message));
  }
  ObtainedParallelPlan made;
  made.part.from = "file";
  made.part.planned.plan_time = read - start;
  made.part.planned.check_time = Clock::now() - read;
  const Machine one = one_of_devices(file->machine);
  Lowered& lowered = made.part.planned.lowered;
  lowered.plan = std::move(*file->part);
  lowered.strategy.algorithms = chosen_algorithms(program, lowered.plan);
  lowered.iteration_time = long_run(program, lowered.plan, one).iteration_time;
  lowered.compute_time = totals_of(program, lowered.plan).compute_time;
  made.part.profile = {file->fingerprint, std::move(program), one, file->fake};
  made.whole.iteration_time = long_run(file->program, file->plan, file->machine).iteration_time;
  made.whole.check_time = made.part.planned.check_time;
  made.whole.plan = std::move(file->plan);
  made.whole.program = std::move(file->program);
  made.whole.machine = machine;
  return made;
}

}  // namespace tidepool
