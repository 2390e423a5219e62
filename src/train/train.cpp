#include "train/train.h"

#include <fmt/format.h>

#include <array>

#include "planners/registry.h"
#include "train/epochs.h"
#include "train/iterations.h"
#include "train/output_file.h"

namespace tidepool {
namespace {

/// What does not go together, whoever asks.
Result<void> check_spec(const TrainingSpec& spec) {
  const bool epochs = spec.epochs > 0;
  const auto refuse = [](const char* what) { return fail(ErrorCode::usage, what); };
  if (!epochs && spec.iterations < 1) return refuse("`iterations` must be at least 1");
  if (!epochs && !(spec.checkpoint.empty() && spec.resume.empty())) {
    return refuse("`checkpoint` and `resume` need `epochs`");
  }
  if (epochs && spec.comparison != Comparison::none) {
    return refuse("a comparison takes `iterations`, not `epochs`");
  }
  if (epochs && spec.graph > 0) return refuse("`graph` takes `iterations`, not `epochs`");
  if (spec.job.devices > 1 && spec.graph > 0) return refuse("`graph` takes one of `devices`");
  if (spec.job.devices > 1 && !spec.plan.empty()) return refuse("`plan` takes one of `devices`");
  return {};
}

/// What is saved replaces no file that is something else.
Result<void> check_checkpoint(const TrainingSpec& spec, const Program& program) {
  const std::string& path = spec.checkpoint.empty() ? spec.resume : spec.checkpoint;
  const std::array inputs{spec.profile, spec.plan};
  if (auto other = check_no_input(path, inputs); !other) return other;
  if (!spec.checkpoint.empty() && !may_become_checkpoint(path)) {
    return fail(
        ErrorCode::usage,
        fmt::format("`checkpoint` {}: exists and is no checkpoint; it is not replaced", path));
  }
  Bytes state = 0;
  for (const Tensor& t : program.tensors) state += t.persistent ? t.bytes : 0;
  return check_writable(path, state);
}

Result<void> check_graph(const Job& job, const TrainingSpec& spec) {
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
  return report;
}

}  // namespace

Result<TrainingReport> run_training(const TrainingSpec& spec, Observer& observer) {
  if (auto sound = check_spec(spec); !sound) return fail(sound.error());
  auto planner = make_planner(spec.planner.name);
  if (!planner) return fail(planner.error());
  if (auto sound = check_swarm(std::span(&spec.planner.name, 1), spec.planner.swarm); !sound) {
    return fail(sound.error());
  }
  auto job = Job::make(spec.job, observer);
  if (!job) return fail(job.error());
  if (auto captures = check_graph(*job, spec); !captures) return fail(captures.error());
  const bool saves = !spec.checkpoint.empty() || !spec.resume.empty();
  if (saves) {
    if (auto sound = check_checkpoint(spec, job->whole().program); !sound)
      return fail(sound.error());
  }
  Result<BudgetSpec> wanted = spec.budget;
  if (!spec.plan.empty()) wanted = budget_of_plan(spec.budget, spec.plan, *job);
  if (!wanted) return fail(wanted.error());
  const auto budget = resolve_budget(*wanted, smaller_rounds(*job), job->alignment());
  if (!budget) return fail(budget.error());
  std::unique_ptr<nn::SampleSource> test;
  if (spec.epochs > 0 && spec.evaluate) {
    auto loaded = job->load_test_data();
    if (!loaded) return fail(loaded.error());
    test = std::move(*loaded);
  }
  std::optional<NothingToLose> scope;
  if (!saves) scope.emplace(observer);
  TrainingReport report = report_on(*job);
  auto start = prepare(*job, spec, *budget, **planner, observer);
  if (!start) return fail(start.error());
  report.start = std::move(*start);
  report.totals = totals_of(job->program(), report.start.lowered().plan);
  const auto trained = spec.epochs > 0
                           ? train_epochs(*job, spec, test.get(), **planner, report, observer)
                           : train_iterations(*job, spec, report, observer);
  if (!trained) return fail(trained.error());
  return report;
}

}  // namespace tidepool
