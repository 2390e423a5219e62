#include "train/train.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/counted.h"
#include "job/offered_rounds.h"
#include "measure/expected_memory.h"
#include "measure/measured_subject.h"
#include "planners/registry.h"
#include "planning/learning.h"
#include "planning/load_file.h"
#include "planning/planning_spec.h"
#include "planning/saved_plan.h"
#include "train/checkpoint_claim.h"
#include "train/epochs.h"
#include "train/in_memory.h"
#include "train/iterations.h"
#include "train/prepare_in_memory.h"
#include "train/training_spec.h"
#include "train/without_limit.h"

namespace tidepool {
namespace {

/// Of a training with a file behind its host.
Result<void> check_file_tier(const TrainingSpec& spec) {
  if (!spec.job.device.has_file_tier()) return {};
  const auto refuse = [](const char* what) { return fail(ErrorCode::usage, what); };
  if (spec.job.device.spills()) return refuse("`file_tier` and `spill` exclude each other");
  if (spec.budget.host == 0) {
    return refuse("`file_tier` needs `host_budget`: the file takes what that does not hold");
  }
  if (spec.job.devices > 1) return refuse("`file_tier` works with one device, not with `devices`");
  return {};
}

/// What does not go together, whoever asks.
Result<void> check_spec(const TrainingSpec& spec) {
  if (auto rounds = check_chosen_rounds(spec.job); !rounds) return rounds;
  const bool epochs = spec.epochs > 0;
  if (spec.job.choose_sub_batch && !spec.profile.empty()) {
    return fail(ErrorCode::usage, "`profile` is of one `sub_batch`, which cannot be auto then");
  }
  const auto refuse = [](const char* what) { return fail(ErrorCode::usage, what); };
  if (!epochs && spec.iterations < 1) return refuse("`iterations` must be at least 1");
  if (!epochs && !(spec.checkpoint.empty() && spec.resume.empty())) {
    return refuse("`checkpoint` and `resume` need `epochs`");
  }
  if (spec.overwrite && spec.checkpoint.empty()) return refuse("`overwrite` needs `checkpoint`");
  if (epochs && spec.comparison != Comparison::none) {
    return refuse("a comparison takes `iterations`, not `epochs`");
  }
  if (epochs && spec.graph > 0) return refuse("`graph` takes `iterations`, not `epochs`");
  if (auto tier = check_file_tier(spec); !tier) return tier;
  return check_memory(spec);
}

Result<void> check_against(const Job& job, const TrainingSpec& spec) {
  if (spec.epochs > 0 && !job.training().held.empty()) {
    return fail(ErrorCode::usage,
                fmt::format("`epochs`: {} takes all of its points in every iteration, and has "
                            "nothing to evaluate; give `iterations`",
                            spec.job.model));
  }
  if (spec.graph == 0 || job.make_device({})->captures()) return {};
  return fail(ErrorCode::usage,
              fmt::format("`graph`: device '{}' does not capture graphs", job.kind().name));
}

TrainingReport report_on(const Job& job) {
  TrainingReport report;
  report.device = job.kind().name;
  report.fingerprint = job.fingerprint();
  report.data = job.data().name();
  report.threads = job.threads();
  report.devices = job.spec().devices;
  report.emulated_link = job.kind().emulates_links();
  if (!job.spec().device.file().folder.empty()) report.file.emplace();
  return report;
}

/// What is known of the budget before anything is measured: of a training in the RAM of the process
/// that RAM.
Result<Budget> first_budget(const TrainingSpec& spec, const Unprepared& from,
                            const BudgetSpec& wanted, std::optional<ProcessMemory>& memory) {
  if (!spec.budget.memory.given()) return budget_for(from.subject, wanted, spec.planner.name);
  const auto limit = memory_of(spec.budget.memory);
  if (!limit) return fail(limit.error());
  auto expected = expected_memory(*from.job, *limit, from.saved == nullptr);
  if (!expected) return fail(expected.error());
  memory = *expected;
  return no_limit();
}

void tell_rounds(const TrainingSpec& asked, const TrainingSpec& spec, const Job& job,
                 TrainingReport& report) {
  report.sub_batch = job.program().sub_batch;
  report.rounds = job.program().rounds();
  const bool parts = report.rounds > 1 || job.parallel() != nullptr;
  report.round_statistics = parts && job.rounds_change_training();
  report.kept_whole = asked.job.choose_sub_batch && report.rounds == 1 &&
                      job.rounds_change_training() && !spec.job.sub_batch_statistics;
}

/// What of this training has other last bits than it has where nothing is asked for, each with the
/// field that is the reason.
std::string other_bits(const TrainingReport& report, const TrainingSpec& asked, const Job& job) {
  const char* file = !asked.resume.empty()    ? "`resume`"
                     : !asked.plan.empty()    ? "`plan`"
                     : !asked.profile.empty() ? "`profile`"
                                              : nullptr;
  const bool stated = asked.job.sub_batch > 0 || asked.job.choose_sub_batch;
  std::vector<std::string> what;
  if (report.rounds > 1) {
    what.push_back(fmt::format("{} rounds ({})", report.rounds,
                               stated || file == nullptr ? "`sub_batch`" : file));
  }
  const auto usual = choose_algorithms(job.program(), job.kind().algorithms);
  const Lowered& lowered = report.start.lowered();
  const auto run = chosen_algorithms(job.program(), lowered.plan);
  std::size_t others = 0;
  for (std::size_t i = 0; i < usual.size(); ++i) others += run[i] != usual[i] ? 1 : 0;
  if (others > 0) {
    const bool chosen = asked.job.algorithms || asked.job.choose_algorithms;
    const char* why = lowered.streaming ? "it streams: only a larger `budget` has the usual ones"
                      : chosen || file == nullptr ? "`algorithms`"
                                                  : file;
    what.push_back(fmt::format("{} with another algorithm ({})", counted(others, "op"), why));
  }
  if (const int threads = usual_threads(job.kind(), job.spec().devices);
      report.threads != threads) {
    what.push_back(
        fmt::format("{} (`threads`, usually {})", counted(report.threads, "thread"), threads));
  }
  return fmt::format("{}", fmt::join(what, ", "));
}

/// What goes on from a checkpoint, or has a plan or a profile from a file, is in their rounds
/// unless the spec states others. A file of another batch is refused later, with the reason.
Result<TrainingSpec> with_rounds_of_files(TrainingSpec spec, const std::optional<SavedPlan>& plan) {
  if (spec.job.sub_batch > 0) return spec;
  if (!spec.resume.empty()) {
    const auto sub_batch = saved_sub_batch(spec.resume, spec.job.batch);
    if (!sub_batch) return fail(sub_batch.error());
    spec.job.sub_batch = *sub_batch;
  } else if (plan) {
    // With another number of devices the rounds need not be possible: refused for that reason.
    const bool same = plan->file.machine.devices() == spec.job.devices;
    if (same && plan->file.program.batch == spec.job.batch) {
      spec.job.sub_batch = plan->file.program.sub_batch;
    }
  } else if (!spec.profile.empty()) {
    const auto file = load_profile_file(spec.profile);
    if (!file) return fail(file.error());
    // Of several devices it is of a part.
    if (file->program.batch * spec.job.devices == spec.job.batch) {
      spec.job.sub_batch = file->program.sub_batch;
    }
  }
  return spec;
}

/// The budget that is stated, or that of the plan file, which has to be of this job.
Result<BudgetSpec> wanted_budget(const TrainingSpec& spec, const Job& job, const SavedPlan* saved) {
  if (saved == nullptr) return spec.budget;
  const DeviceSpec& device = spec.job.device;
  const RunsHere here{job.fingerprint(), spec.job.devices, device.has_file_tier(), device.spills(),
                      job.whole().program};
  // What it was planned for means nothing to another job.
  if (auto same = check_runs_here(*saved, here); !same) return fail(same.error());
  return budget_of_plan(spec.budget, *saved);
}

}  // namespace

namespace {

bool saves(const TrainingSpec& spec) { return !spec.checkpoint.empty() || !spec.resume.empty(); }

/// The job and all that is known of it before anything is measured. `saved` must outlive it.
Result<Unprepared> unprepared(const TrainingSpec& spec, const std::optional<SavedPlan>& saved,
                              Observer& observer) {
  if (spec.budget.memory.given()) spare_memory();
  auto job = Job::make(spec.job, observer);
  if (!job) return fail(job.error());
  if (auto sound = check_against(*job, spec); !sound) return fail(sound.error());
  Unprepared from{std::make_shared<Job>(std::move(*job)), {}, saved ? &*saved : nullptr};
  from.subject = subject_of_job(from.job, spec.job);
  from.subject.may_choose = true;
  // A profile is of some rounds: nothing is left to choose, and one of another job is refused.
  if (!spec.profile.empty()) from.subject.offered.clear();
  return from;
}

Result<TrainingReport> train_once(const TrainingSpec& asked, TrainingObserver& observer) {
  if (auto sound = check_spec(asked); !sound) return fail(sound.error());
  std::optional<SavedPlan> saved;
  if (!asked.plan.empty()) {
    auto read = read_saved_plan(asked.plan);
    if (!read) return fail(read.error());
    saved = std::move(*read);
  }
  const auto rounds = with_rounds_of_files(asked, saved);
  if (!rounds) return fail(rounds.error());
  const TrainingSpec& spec = *rounds;
  auto planner = make_planner(spec.planner.name);
  if (!planner) return fail(planner.error());
  if (auto sound = check_planner_settings(std::span(&spec.planner.name, 1), spec.planner.values);
      !sound) {
    return fail(sound.error());
  }
  auto from = unprepared(spec, saved, observer);
  if (!from) return fail(from.error());
  Job& job = *from->job;
  const auto claim = claim_checkpoint(spec, job.whole().program, observer);
  if (!claim) return fail(claim.error());
  const auto wanted = wanted_budget(spec, job, from->saved);
  if (!wanted) return fail(wanted.error());
  std::optional<ProcessMemory> memory;
  const auto budget = first_budget(spec, *from, *wanted, memory);
  if (!budget) return fail(budget.error());
  std::unique_ptr<nn::SampleSource> test;
  if (spec.epochs > 0 && spec.evaluate) {
    auto loaded = job.load_test_data();
    if (!loaded) return fail(loaded.error());
    test = std::move(*loaded);
  }
  std::optional<NothingToLose> scope;
  if (!saves(spec)) scope.emplace(observer);
  TrainingReport report = report_on(job);
  auto start = memory ? prepare_in_memory(*from, spec, *memory, observer)
                      : prepare(*from, spec, *budget, observer);
  if (!start) return fail(start.error());
  report.start = std::move(*start);
  if (memory) report.memory = memory_report(*memory, job.program());
  report.branches = job.whole().survival.size();
  tell_rounds(asked, spec, job, report);
  report.other_bits = other_bits(report, asked, job);
  report.totals = totals_of(job.program(), report.start.lowered().plan);
  const auto trained = spec.epochs > 0
                           ? train_epochs(job, spec, test.get(), **planner, report, observer)
                           : train_iterations(job, spec, **planner, report, observer);
  if (!trained) return fail(trained.error());
  if (report.memory) report.memory->measure();
  return report;
}

}  // namespace

Result<TrainingReport> run_training(const TrainingSpec& asked, TrainingObserver& observer) {
  const bool apart = asked.budget.memory.given() && asked.comparison == Comparison::times;
  if (!apart) return train_once(asked, observer);
  if (auto sound = check_spec(asked); !sound) return fail(sound.error());
  const auto without = time_without_limit(asked, observer);
  if (!without) return fail(without.error());
  TrainingSpec inside = asked;
  inside.comparison = Comparison::none;
  auto report = train_once(inside, observer);
  if (report) {
    report->baseline.emplace();
    report->baseline->time = *without;
  }
  return report;
}

}  // namespace tidepool
