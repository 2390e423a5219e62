#include "subject.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "file_tier_options.h"
#include "job/device_kind.h"
#include "job/job.h"
#include "job/offered_rounds.h"
#include "lower/expand.h"
#include "lower/overhead.h"
#include "measure/link_speed.h"
#include "measured_subject.h"
#include "named_machine.h"
#include "nn/models/model.h"
#include "planning/measurement.h"
#include "planning/parallel_plan.h"
#include "planning/planning_spec.h"
#include "planning/same_job.h"
#include "several_devices.h"
#include "trace/trace_program.h"

namespace tidepool::cli {
namespace {

/// A plan is good only where its profile was measured: others are refused, unless one plans for
/// another device on purpose.
Result<Subject> from_profile(const SubjectArguments& a, std::span<const BudgetSpec> budgets) {
  const std::string& path = a.profile;
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  auto profile = read_profile(*text, path);
  if (!profile) return fail(profile.error());
  if (profile->program.rounds() > 1 &&
      std::ranges::any_of(budgets, [](const BudgetSpec& b) { return b.device.percent >= 0; })) {
    return fail(ErrorCode::usage,
                fmt::format("{}: percentages of a budget are of the peak of the whole batch, which "
                            "a profile in rounds of {} does not know: give `budget` in bytes",
                            path, profile->program.sub_batch));
  }
  if (!a.foreign && !device_kinds().empty()) {
    const auto here = device_fingerprint(a.job.device);
    if (!here) return fail(here.error());
    if (auto same = check_fingerprint(path, profile->fingerprint, *here); !same) {
      Error error = same.error();
      error.message += "; --foreign plans for that one all the same";
      return fail(std::move(error));
    }
  }
  const bool fake = profile->fake;
  return Subject{std::move(*profile), ProfileSource{"file", {.fake = fake}}, 0};
}

/// A preset: layouts without padding, the algorithms of a GPU's library, times from the compute
/// model.
Result<Subject> on_preset(const SubjectArguments& a) {
  auto machine = with_file_behind(preset(a.machine), a.job.device.file_tier);
  if (!machine) return fail(machine.error());
  auto graph =
      nn::build_model(a.job.model, {.sequence = a.job.sequence, .clusters = a.job.clusters});
  if (!graph) return fail(graph.error());
  const auto in_rounds = [job = a.job, graph = *graph, machine = *machine](
                             std::int64_t sub_batch, bool statistics) -> Result<Program> {
    nn::TrainingOptions options;
    options.batch = job.batch;
    options.sub_batch = sub_batch;
    options.sub_batch_statistics = statistics;
    options.storage = job.storage;
    options.optimizer = job.optimizer;
    options.devices = job.devices;
    options.naive_accumulation = job.accumulation == Accumulation::naive;
    options.workspace_limit = job.workspace_limit;
    auto training = nn::build_training_program(graph, options, nn::preset_kernels());
    if (!training) return fail(training.error());
    apply_cost_model(machine, training->program);
    return std::move(training->program);
  };
  const bool batch_norm = nn::rounds_change_training(*graph);
  std::vector<std::int64_t> offered = offered_sizes(a.job, batch_norm);
  auto program = in_rounds(a.job.sub_batch, a.job.sub_batch_statistics);
  for (std::size_t i = 1; !program && i < offered.size(); ++i) {
    // A whole batch of more elements than kernels can number.
    program = in_rounds(offered[i], a.job.sub_batch_statistics);
  }
  if (!program) return fail(program.error());
  Subject subject{{"preset " + machine->name, std::move(*program), *machine},
                  {},
                  0,
                  a.job.sub_batch_statistics,
                  in_rounds,
                  batch_norm,
                  std::move(offered)};
  if (!subject.offered.empty()) {
    subject.rounds = std::make_shared<RoundsWorkload>(
        subject.offered, [in_rounds, statistics = subject.statistics](std::int64_t sub_batch) {
          return in_rounds(sub_batch, statistics);
        });
  }
  if (a.job.devices > 1) {
    if (auto parallel = several_on_preset(a.job, a.choosing, subject); !parallel)
      return fail(parallel.error());
  }
  return subject;
}

/// A program of any origin: with the times of its algorithms, or with those of the machine's
/// compute model where it has none at all.
Result<Subject> from_program(const SubjectArguments& a) {
  if (a.machine.empty()) {
    return fail(ErrorCode::usage,
                "--program needs --machine: a preset (see `tidepool machines`), or a file that "
                "ends in .json");
  }
  auto machine = with_file_behind(named_machine(a.machine), a.job.device.file_tier);
  if (!machine) return fail(machine.error());
  const auto text = read_file(a.program);
  if (!text) return fail(text.error());
  auto program =
      read_json(*text, a.program, [](const JsonCursor& json) { return program_from_json(json); });
  if (!program) return fail(program.error());
  const bool timed = std::ranges::any_of(program->ops, [](const Op& op) {
    return std::ranges::any_of(op.algorithms, [](const Algorithm& x) { return x.time > Nanos{0}; });
  });
  if (!timed) {
    if (machine->compute.peak_flops == 0) {
      return fail(ErrorCode::bad_input,
                  fmt::format("{}: no op has a time, and machine '{}' has no compute model",
                              a.program, machine->name));
    }
    apply_cost_model(*machine, *program);
  }
  if (auto times = validate_times(*program, *machine); !times) return fail(times.error());
  return Subject{{"program " + program->name, std::move(*program), *machine}, {}, 0};
}

/// A recorded iteration, with its own times, on the links of a preset.
Result<Subject> from_trace(const SubjectArguments& a) {
  constexpr const char* kPublishedMachine = "gtx1080ti";  // that of the SmartPool/AutoSwap paper
  const std::string name = a.machine.empty() ? kPublishedMachine : a.machine;
  auto machine = with_file_behind(preset(name), a.job.device.file_tier);
  if (!machine) return fail(machine.error());
  const auto recording = load_trace(a.trace);
  if (!recording) return fail(recording.error());
  if (!recording->has_times) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: the trace has no times; a plan needs them", a.trace.file));
  }
  auto workload = trace_program(*recording, machine->compute);
  if (!workload) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: {}", a.trace.file, workload.error().message));
  }
  if (workload->moved > 0) {
    inform(
        "{}: {} outlive their iteration; a plan of one iteration moves them on the device, "
        "which takes {} of its {}\n",
        a.trace.file, format_bytes(workload->moved), format_time(workload->move_time),
        format_time(workload->time()));
  }
  return Subject{{"trace " + recording->name, std::move(workload->program), *machine},
                 {},
                 align_up(workload->resident, machine->alignment())};
}

/// What only a measurement on this device would look at.
const std::vector<std::string> kOfTheDevice{
    "--device",        "--threads",      "--link",      "--data",
    "--data-dir",      "--tf32",         "--reprofile", "--allow-nondeterministic",
    "--learning-rate", "--weight-decay", "--memory",    "--spill",
    "--file-folder"};
/// What a file says itself.
const std::vector<std::string> kOfTheProgram{"--batch",   "--sub-batch", "--sub-batch-statistics",
                                             "--storage", "--optimizer", "--clusters"};

std::vector<std::string> joined(std::vector<std::string> all,
                                const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

void add_subject_options(CLI::App& command, SubjectArguments& a) {
  add_job_options(command, a.job);
  command.get_option("model")->required(false);
  command.add_option(
      "--machine", a.machine,
      "plan for a preset (see `tidepool machines`) instead of measuring this device");
  command.add_option("--profile", a.profile, "plan from a profile file of this device");
  command
      .add_flag("--foreign", a.foreign,
                "with --profile: also from another device's profile, for running there")
      ->needs("--profile");
  command.add_option("--program", a.program,
                     "plan for the iteration in a program file, with the times it has, on the "
                     "machine of --machine: a preset, or a machine's own .json file");
  command.add_option("--trace", a.trace.file,
                     "plan for the iteration of a recorded trace (see `tidepool info`); its own "
                     "times, the links of --machine (gtx1080ti)");
  add_resident_option(command, a.trace);
  command.get_option("--resident")->needs("--trace");
  add_cache_options(command, a.cache);
}

std::vector<Ignored> ignored_by_subjects() {
  // --device, --threads and what chooses kernels say which device a profile has to be of.
  const std::vector<std::string> measuring{"--link",      "--data",          "--data-dir",
                                           "--reprofile", "--learning-rate", "--weight-decay",
                                           "--memory",    "--spill",         "--file-tier"};
  return {{"--machine", kOfTheDevice},
          {"--profile", joined({"model"}, joined(measuring, kOfTheProgram))},
          {"--program", joined(kOfTheDevice, kOfTheProgram)},
          {"--trace", joined(kOfTheDevice, kOfTheProgram)}};
}

namespace {

Result<Subject> any_subject(const SubjectArguments& a, std::span<const BudgetSpec> budgets,
                            const Cache& cache, Observer& observer) {
  if (!a.machine.empty() && !a.profile.empty()) {
    return fail(ErrorCode::usage, "--machine and --profile exclude each other");
  }
  if (!a.trace.file.empty() && (!a.profile.empty() || !a.job.model.empty())) {
    return fail(ErrorCode::usage, "--trace excludes a model and --profile");
  }
  if (!a.program.empty() && (!a.profile.empty() || !a.job.model.empty() || !a.trace.file.empty())) {
    return fail(ErrorCode::usage, "--program excludes a model, --profile and --trace");
  }
  if (!a.program.empty()) return from_program(a);
  if (a.profile.empty() && a.job.model.empty() && a.trace.file.empty()) {
    return fail(ErrorCode::usage, "give a model, --profile, --program or --trace (see --help)");
  }
  if (!a.trace.file.empty()) return from_trace(a);
  if (!a.profile.empty()) return from_profile(a, budgets);
  if (!a.machine.empty()) return on_preset(a);
  return measured_subject(a, budgets, cache, observer);
}

}  // namespace

Result<Subject> subject_of(const SubjectArguments& a, std::span<const BudgetSpec> budgets,
                           const Cache& cache, Observer& observer) {
  auto subject = any_subject(a, budgets, cache, observer);
  if (!subject) return subject;
  const Program& program = subject->profile.program;
  if (std::string why = why_unplannable(program); !why.empty() && on_one_device(program)) {
    return fail(ErrorCode::bad_input, fmt::format("{}: {}", subject->profile.program.name, why));
  }
  limit_workspaces(subject->profile.program, a.job.workspace_limit);
  subject->may_choose = a.may_choose;
  return subject;
}

Result<Subject> subject_of(const SubjectArguments& a, const BudgetSpec& budget, const Cache& cache,
                           Observer& observer) {
  return subject_of(a, std::span(&budget, 1), cache, observer);
}

Error with_resident(Error error, const Subject& subject) {
  const Bytes resident = subject.resident;
  if (subject.memory && error.code == ErrorCode::infeasible && !error.of_host) {
    return subject.memory->explained(std::move(error));
  }
  if (resident == 0 || error.code != ErrorCode::infeasible) return error;
  error.message += fmt::format("; the resident bytes of the trace, {} B ({}), come on top",
                               resident, format_bytes(resident));
  if (error.smallest_feasible && !error.of_host) *error.smallest_feasible += resident;
  return error;
}

JobRounds Subject::job_rounds(bool stated) const {
  JobRounds offer{
      profile.program, statistics, in_rounds, stated ? std::vector<std::int64_t>{} : offered, true,
      may_choose};
  if (memory) offer.limit_ops(memory->most_ops());
  return offer;
}

Bytes Subject::unlimited_peak() const {
  const Bytes alignment = profile.machine.alignment();
  const auto whole = whole_batch_peak(job_rounds(), alignment);
  return resident + whole.value_or(tidepool::unlimited_peak(profile.program, alignment));
}

Nanos Subject::unlimited_time(const Program& program, AlgorithmPolicy policy) const {
  const Nanos own = tidepool::unlimited_time(program, profile.machine, policy);
  return std::min(own, report_of(program, policy).whole.value_or(own));
}

RoundsReport Subject::report_of(const Program& program, AlgorithmPolicy policy) const {
  RoundsReport report{program.sub_batch, program.rounds(), rounds != nullptr,
                      batch_norm && (program.rounds() > 1 || parallel != nullptr)};
  report.of_part = parallel != nullptr;
  if (rounds == nullptr) return report;
  const Program* whole = rounds->known(program.batch);
  // Asking a preset costs nothing.
  if (whole == nullptr && !source) whole = rounds->program(program.batch).value_or(nullptr);
  if (whole != nullptr) {
    report.whole = tidepool::unlimited_time(*whole, profile.machine, policy);
  }
  return report;
}

Bytes device_bytes(const BudgetSpec& spec, const Subject& subject) {
  if (spec.memory.given() && subject.memory) {
    return std::max<Bytes>(subject.memory->largest_arena(subject.profile.machine.alignment()), 0);
  }
  if (!spec.limited()) return kNoDeviceLimit;
  return std::max<Bytes>(0, spec.device.resolve(subject.unlimited_peak()) - subject.resident);
}

Result<Budget> budget_of(BudgetSpec spec, const Subject& subject, bool stated) {
  const bool whole = spec.memory.given() && subject.memory;
  if (whole || (subject.resident > 0 && spec.limited()))
    spec.device = {.bytes = device_bytes(spec, subject), .percent = -1};
  auto budget =
      resolve_budget(spec, subject.job_rounds(stated), subject.profile.machine.alignment());
  if (!budget) return fail(with_resident(budget.error(), subject));
  return budget;
}

}  // namespace tidepool::cli
