#include "planning/saved_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/at.h"
#include "base/counted.h"
#include "base/quantity.h"
#include "check/check.h"
#include "planning/algorithm_choice.h"
#include "planning/load_file.h"
#include "planning/same_job.h"
#include "schedule/plan_totals.h"
#include "sim/simulate.h"

namespace tidepool {
namespace {

using FileClock = std::chrono::steady_clock;

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
Result<void> check_files(const SavedPlan& saved, const RunsHere& here) {
  const auto refuse = [&](bool with, const char* behind) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: was made {} a file behind {}, this training has {}", saved.path,
                            with ? "with" : "without", behind, with ? "none" : "one"));
  };
  const Machine& machine = saved.file.machine;
  const bool tier = machine.behind_host() != kNone;
  const bool spills = !tier && machine.spaces.back().kind == SpaceKind::file;
  if (tier != here.file_tier) return refuse(tier, "the host");
  if (spills != here.spills) return refuse(spills, "memory");
  return {};
}

/// A proof that failed is an error of the file.
Error of_file(const SavedPlan& saved, const Error& why) {
  return {why.code, fmt::format("{}: {}", saved.path, why.message), std::nullopt};
}

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
Result<void> prove_both(const PlanFile& file, const Subject& subject, const Program& program,
                        const Budget& budget) {
  const SubjectDevices& devices = *subject.devices;
  auto proof = check(devices.program->whole, file.plan, check_limits(devices.machine, budget));
  if (proof) proof = check(file.program, file.plan, check_limits(file.machine, budget));
  if (!proof) return proof;
  const Plan& part = *file.part;
  const Machine one = one_of_devices(file.machine);
  proof = check(program, part, check_limits(one, {part.device_bytes(), part.host_bytes(), {}}));
  if (!proof) return proof;
  if (same_algorithms(file.program, file.plan, devices.program->replication,
                      chosen_algorithms(program, part))) {
    return {};
  }
  return fail(ErrorCode::bad_input, "devices run other algorithms than the plan of their part");
}

/// What the file says of its plan may be of another version, or edited: it is found anew.
void time_anew(const Program& program, const Machine& machine, Lowered& lowered) {
  lowered.strategy.algorithms = chosen_algorithms(program, lowered.plan);
  lowered.iteration_time = long_run(program, lowered.plan, machine).iteration_time;
  lowered.compute_time = totals_of(program, lowered.plan).compute_time;
}

}  // namespace

Result<SavedPlan> read_saved_plan(const std::string& path) {
  const auto start = FileClock::now();
  auto file = load_plan(path);
  if (!file) return fail(file.error());
  return SavedPlan{path, std::move(*file), FileClock::now() - start};
}

Result<void> check_runs_here(const SavedPlan& saved, const RunsHere& here) {
  const std::int32_t devices = saved.file.machine.devices();
  if (devices != here.devices) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: is a plan for {}, this training has {}", saved.path,
                            counted(devices, "device"), here.devices));
  }
  if (auto same = check_fingerprint(saved.path, saved.file.fingerprint, here.fingerprint); !same) {
    return same;
  }
  if (auto same = check_files(saved, here); !same) return same;
  return check_program(saved.path, saved.file.program, here.program);
}

BudgetSpec budget_of_plan(const BudgetSpec& given, const SavedPlan& saved) {
  BudgetSpec budget = given;
  if (!budget.limited()) budget.device = {.bytes = saved.file.device_budget};
  if (budget.host == 0) budget.host = saved.file.host_budget;
  return budget;
}

Result<ObtainedPlan> plan_of_file(const SavedPlan& saved, const Profile& subject,
                                  const Budget& budget) {
  const auto start = FileClock::now();
  const PlanFile& file = saved.file;
  if (auto same = check_fingerprint(saved.path, file.fingerprint, subject.fingerprint); !same) {
    return fail(same.error());
  }
  if (auto same = check_program(saved.path, file.program, subject.program); !same) {
    return fail(same.error());
  }
  if (auto fits = check_sizes(saved.path, file.plan, subject.machine, budget); !fits) {
    return fail(fits.error());
  }
  auto proof = check(subject.program, file.plan, check_limits(subject.machine, budget));
  if (proof) proof = check(file.program, file.plan, check_limits(file.machine, budget));
  if (!proof) return fail(of_file(saved, proof.error()));
  ObtainedPlan plan;
  plan.from = "file";
  plan.planned.lowered.plan = file.plan;
  plan.planned.lowered.strategy = file.strategy;
  plan.planned.plan_time = saved.read_time;
  plan.planned.check_time = FileClock::now() - start;
  time_anew(file.program, file.machine, plan.planned.lowered);
  plan.profile = {file.fingerprint, file.program, file.machine, file.fake};
  return plan;
}

Result<ObtainedParallelPlan> parallel_plan_of_file(const SavedPlan& saved, const Subject& subject,
                                                   const Budget& budget) {
  const auto start = FileClock::now();
  const PlanFile& file = saved.file;
  const SubjectDevices& devices = *subject.devices;
  if (!file.part) {
    return fail(
        ErrorCode::bad_input,
        fmt::format("{}: field 'part': missing, the plan of one device's part", saved.path));
  }
  if (auto fits = check_sizes(saved.path, file.plan, devices.machine, budget); !fits) {
    return fail(fits.error());
  }
  Program program = subject.profile.program;
  give_times(file.program, devices.program->replication, program);
  if (auto proof = prove_both(file, subject, program, budget); !proof) {
    return fail(of_file(saved, proof.error()));
  }
  ObtainedParallelPlan made;
  made.part.from = "file";
  made.part.planned.plan_time = saved.read_time;
  made.part.planned.check_time = FileClock::now() - start;
  const Machine one = one_of_devices(file.machine);
  Lowered& lowered = made.part.planned.lowered;
  lowered.plan = *file.part;
  time_anew(program, one, lowered);
  made.part.profile = {file.fingerprint, std::move(program), one, file.fake};
  made.whole.iteration_time = long_run(file.program, file.plan, file.machine).iteration_time;
  made.whole.check_time = made.part.planned.check_time;
  made.whole.plan = file.plan;
  made.whole.program = file.program;
  made.whole.machine = devices.machine;
  return made;
}

}  // namespace tidepool
