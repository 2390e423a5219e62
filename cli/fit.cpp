#include "fit.h"

#include <fmt/format.h>
#include <zlib.h>

#include <chrono>
#include <cmath>

#include "algorithm_choice.h"
#include "infeasible.h"
#include "nn/evaluation_runner.h"
#include "output_file.h"
#include "planning.h"
#include "prompt_end.h"
#include "proven_gap.h"
#include "training.h"

namespace tidepool::cli {
namespace {

using State = std::vector<nn::CheckpointTensor>;

State state_of(const nn::ProgramRunner& runner) {
  State state;
  for (const nn::PersistentTensor& t : runner.persistent_tensors()) {
    const auto value = runner.value(t.name);
    state.push_back({t.name, {value->begin(), value->end()}});
  }
  return state;
}

/// Gives the runner those of its persistent tensors that the state has. A tensor of the state that
/// the runner lacks is no error: evaluation needs no optimizer state.
Result<void> restore(const State& state, nn::ProgramRunner& runner) {
  for (const nn::PersistentTensor& t : runner.persistent_tensors()) {
    const auto found =
        std::find_if(state.begin(), state.end(), [&](const auto& s) { return s.name == t.name; });
    if (found == state.end()) {
      return fail(ErrorCode::bad_input, fmt::format("the checkpoint has no tensor '{}'", t.name));
    }
    if (auto set = runner.set_value(t.name, found->value); !set) return set;
  }
  return {};
}

std::uint32_t checksum(const State& state) {
  uLong crc = crc32(0, nullptr, 0);
  for (const nn::CheckpointTensor& t : state) {
    crc = crc32(crc, reinterpret_cast<const Bytef*>(t.value.data()),
                static_cast<uInt>(t.value.size()));
  }
  return static_cast<std::uint32_t>(crc);
}

Result<nn::Checkpoint> load_checkpoint(const Job& job, const std::string& path) {
  const auto content = read_file(path);
  if (!content) return fail(content.error());
  auto checkpoint = nn::read_checkpoint(*content, path);
  if (!checkpoint) return fail(checkpoint.error());
  for (const auto& [name, value] : job.settings()) {
    const std::string saved = checkpoint->setting(name);
    if (saved == value) continue;
    return fail(
        ErrorCode::bad_input,
        fmt::format("{}: was saved with {} '{}', this training has '{}'; going on would not be "
                    "bit for bit the same training",
                    path, name, saved, value));
  }
  return checkpoint;
}

constexpr const char* kChoiceSetting = "algorithm_choice";

/// The algorithms the checkpoint's training ran; none in files of before they were kept, whose
/// policy then has to say it all.
Result<std::optional<AlgorithmChoice>> saved_choice(const Job& job,
                                                    const nn::Checkpoint& checkpoint,
                                                    const std::string& path) {
  const std::string text = checkpoint.setting(kChoiceSetting);
  if (!text.empty()) return read_algorithm_choice(job.training().program, text, path);
  if (job.policy() == AlgorithmPolicy::least_workspace) return std::nullopt;
  return fail(ErrorCode::bad_input,
              fmt::format("{}: does not say which algorithms were the fastest when it was saved; "
                          "going on would not be bit for bit the same training",
                          path));
}

/// The plan to train with. `choice`: what every op has to run.
Result<ObtainedPlan> training_plan(const Job& job, const Machine& machine, const Budget& budget,
                                   const BudgetArguments& budget_arguments, Planner& planner,
                                   const FitArguments& arguments,
                                   const std::optional<AlgorithmChoice>& choice) {
  const Program& program = job.training().program;
  if (!arguments.plan.empty()) {
    auto plan = plan_from_file(arguments.plan, {job.fingerprint(), program, machine}, budget);
    if (plan && choice && chosen_algorithms(program, plan->planned.lowered.plan) != *choice) {
      return fail(ErrorCode::bad_input,
                  fmt::format("{}: runs other algorithms than {} was trained with; going on would "
                              "not be bit for bit the same training",
                              arguments.plan, arguments.resume));
    }
    return plan;
  }
  const Profile subject{job.fingerprint(), choice ? restrict_to(*choice, program) : program,
                        machine};
  PlanRequest request{subject, budget, budget_arguments.planner,
                      planner_options(job.arguments(), budget_arguments)};
  auto plan = obtain_plan(planner, request, arguments.profiling.cache);
  if (!plan) {
    return fail(with_least_host_budget(plan.error(), planner, subject.program, machine, budget,
                                       request.options));
  }
  if (choice) widen(*choice, plan->planned.lowered);
  return plan;
}

/// What a training starts with.
struct Start {
  Machine machine;
  std::optional<nn::Checkpoint> checkpoint;
  ProfileSource profile;
  ObtainedPlan plan;
  ProvenGap gap;
};

Result<Start> prepare(Job& job, const Budget& budget, const BudgetArguments& budget_arguments,
                      Planner& planner, const FitArguments& arguments, ProgressSink& progress) {
  Start start;
  const auto machine = device_machine(job, progress);
  if (!machine) return fail(machine.error());
  start.machine = *machine;
  // What a checkpoint cannot go on from is said before anything is measured.
  std::optional<AlgorithmChoice> choice;
  if (!arguments.resume.empty()) {
    auto loaded = load_checkpoint(job, arguments.resume);
    if (!loaded) return fail(loaded.error());
    const auto saved = saved_choice(job, *loaded, arguments.resume);
    if (!saved) return fail(saved.error());
    start.checkpoint = std::move(*loaded);
    choice = *saved;
  }
  const bool all_algorithms = job.policy() == AlgorithmPolicy::fastest;
  const auto profile =
      obtain_profile(job, start.machine, {kProfileIterations, all_algorithms, budget},
                     arguments.profiling, progress);
  if (!profile) return fail(profile.error());
  start.profile = *profile;
  auto plan =
      training_plan(job, start.machine, budget, budget_arguments, planner, arguments, choice);
  if (!plan) return fail(plan.error());
  start.plan = std::move(*plan);
  progress.update(0, "how far the plan may be from the best");
  const auto& planned_for = start.plan.profile;
  const auto gap =
      proven_gap(planned_for ? planned_for->program : job.program(),
                 planned_for ? planned_for->machine : start.machine, start.plan.planned.lowered,
                 budget.device, planner_options(job.arguments(), budget_arguments));
  if (!gap) return fail(gap.error());
  start.gap = *gap;
  return start;
}

struct EpochReport {
  std::int64_t epoch = 0;
  std::int64_t iterations = 0;  ///< of it in this run; fewer than it has when interrupted, resumed
  std::int64_t all_iterations = 0;  ///< that it has
  double loss = 0;                  ///< mean over its iterations in this run
  std::optional<nn::EvaluationResult> test;
  double seconds = 0;
};

/// One fit: the job with its plan, and the state between epochs.
class Fit {
 public:
  Fit(Job& job, const Budget& budget, const Machine& machine, Planner& planner,
      const Planned& planned, const FitArguments& arguments)
      : job_(job),
        budget_(budget),
        machine_(machine),
        planner_(planner),
        planned_(planned),
        arguments_(arguments),
        total_(arguments.epochs * job.iterations_per_epoch()) {}

  Result<void> resume(nn::Checkpoint checkpoint) {
    state_ = std::move(checkpoint.tensors);
    next_ = checkpoint.next_iteration;
    if (next_ >= total_) {
      return fail(ErrorCode::usage,
                  fmt::format("{} has finished {} of {} iterations: nothing is left; "
                              "ask for more --epochs",
                              arguments_.resume, next_, total_));
    }
    return {};
  }

  /// To the end of the epoch, or to an interruption.
  Result<void> train_epoch(ProgressSink& progress) {
    const std::int64_t per_epoch = job_.iterations_per_epoch();
    const std::int64_t epoch = next_ / per_epoch;
    const std::int64_t count = (epoch + 1) * per_epoch - next_;
    const auto start = std::chrono::steady_clock::now();
    auto runner = job_.make_runner(total_, next_);
    if (!runner) return fail(runner.error());
    if (!state_.empty()) {
      if (auto restored = restore(state_, **runner); !restored) return restored;
    }
    Training training(job_, machine_, planned_.lowered.plan, std::move(*runner));
    training.executor().enter();
    const RunReport report = training.run(count, [&](std::int64_t i, Nanos time) {
      progress.update(static_cast<double>(next_ + i + 1) / static_cast<double>(total_),
                      fmt::format("epoch {}/{}: iteration {}/{}, {}", epoch + 1, arguments_.epochs,
                                  per_epoch - count + i + 1, per_epoch, format_time(time)));
    });
    training.executor().exit();
    next_ += report.iterations;
    if (training.measured() > 0) measured_ = training.median();
    arena_peak_ = std::max(arena_peak_, training.executor().arena_peak());
    state_ = state_of(training.runner());
    EpochReport& r = epochs_.emplace_back();
    r.epoch = epoch + 1;
    r.iterations = report.iterations;
    r.all_iterations = per_epoch;
    for (const float loss : training.runner().losses()) r.loss += static_cast<double>(loss);
    r.loss /= std::max<double>(1, static_cast<double>(report.iterations));
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return {};
  }

  Result<void> save() const {
    if (arguments_.checkpoint.empty()) return {};
    const Program& program = job_.training().program;
    auto settings = job_.settings();
    settings.emplace_back(kChoiceSetting,
                          to_text(program, chosen_algorithms(program, planned_.lowered.plan)));
    return write_file(arguments_.checkpoint, nn::serialize({std::move(settings), next_, state_}));
  }

  /// On the test split, inside the same budget; the training's device is closed by now.
  Result<void> evaluate(const nn::Dataset& data) {
    const auto program = job_.make_evaluation();
    if (!program) return fail(program.error());
    FixedWorkload workload(program->program);
    PlannerOptions options;
    options.stop = interrupted;
    auto planned = make_plan(planner_, workload, machine_, budget_, options);
    if (!planned) return fail(planned.error());
    auto runner = nn::EvaluationRunner::create(*program, job_.kernels(), data);
    if (!runner) return fail(runner.error());
    if (auto restored = restore(state_, **runner); !restored) return restored;
    const std::unique_ptr<Device> device = job_.make_device(machine_);
    Executor executor(program->program, planned->lowered.plan, *device, **runner);
    executor.enter();
    const RunReport report = executor.run((*runner)->iterations(), interrupted);
    if (!report.cancelled) epochs_.back().test = (*runner)->result();
    arena_peak_ = std::max(arena_peak_, executor.arena_peak());
    return {};
  }

  [[nodiscard]] bool finished() const { return next_ >= total_; }
  [[nodiscard]] std::int64_t next_iteration() const { return next_; }
  [[nodiscard]] const std::vector<EpochReport>& epochs() const { return epochs_; }
  [[nodiscard]] Nanos measured() const { return measured_; }
  [[nodiscard]] Bytes arena_peak() const { return arena_peak_; }
  [[nodiscard]] std::uint32_t state_checksum() const { return checksum(state_); }

 private:
  Job& job_;
  const Budget& budget_;
  const Machine& machine_;
  Planner& planner_;
  const Planned& planned_;
  const FitArguments& arguments_;
  std::int64_t total_;
  std::int64_t next_ = 0;
  State state_;
  std::vector<EpochReport> epochs_;
  Nanos measured_{};
  Bytes arena_peak_ = 0;
};

void print_epoch(const EpochReport& r, std::int64_t epochs) {
  say("epoch {}/{}", r.epoch, epochs);
  if (r.iterations < r.all_iterations)
    say(", {} of its {} iterations", r.iterations, r.all_iterations);
  say(": loss {:.4f}", r.loss);
  if (r.test)
    say(", test loss {:.4f}, accuracy {:.2f} %", r.test->mean_loss, 100 * r.test->accuracy);
  say(", {:.0f} s\n", r.seconds);
}

Json to_json(const Job& job, const Budget& budget, const Start& start, const Fit& fit) {
  const Planned& planned = start.plan.planned;
  Json epochs = Json::array();
  for (const EpochReport& r : fit.epochs()) {
    Json row = {
        {"epoch", r.epoch}, {"iterations", r.iterations}, {"loss", r.loss}, {"seconds", r.seconds}};
    if (r.test) {
      row["test_loss"] = r.test->mean_loss;
      row["accuracy"] = r.test->accuracy;
    }
    epochs.push_back(std::move(row));
  }
  Json out = {
      {"schema", 1},
      {"model", job.arguments().model},
      {"batch", job.arguments().batch},
      {"device", job.kind().name},
      {"planner", planned.lowered.plan.planner},
      {"budget_bytes", budget.device},
      {"footprint_bytes", planned.lowered.plan.device_bytes()},
      {"arena_peak_bytes", fit.arena_peak()},
      {"predicted_ms", to_ms(planned.lowered.iteration_time)},
      {"measured_ms", fit.measured() > Nanos{0} ? Json(to_ms(fit.measured())) : Json(nullptr)},
      {"profile", to_json(start.profile)},
      {"plan_from", start.plan.from},
      {"next_iteration", fit.next_iteration()},
      {"state_crc32", fit.state_checksum()},
      {"epochs", std::move(epochs)}};
  start.gap.add_to(out);
  return out;
}

}  // namespace

void add_fit_options(CLI::App& command, FitArguments& a) {
  command
      .add_option("--epochs", a.epochs,
                  "train whole epochs, without the unlimited run beside it; evaluates after each")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
      ->excludes("--iterations");
  command
      .add_option("--checkpoint", a.checkpoint,
                  "with --epochs: save the training here after every epoch and on Ctrl-C "
                  "(default: the file of --resume)")
      ->needs("--epochs");
  command
      .add_option("--resume", a.resume,
                  "with --epochs: go on from a checkpoint, bit for bit, also under another budget "
                  "or planner, and go on saving to it")
      ->needs("--epochs");
  command
      .add_option("--profile", a.profiling.file,
                  "with --epochs: plan from this profile file of this device instead of measuring")
      ->needs("--epochs");
  command
      .add_option("--plan", a.plan,
                  "with --epochs: run this plan file of this device instead of planning")
      ->needs("--epochs");
  command.add_flag("!--no-evaluate", a.evaluate, "with --epochs: skip the test split")
      ->needs("--epochs");
}

Result<int> fit(Job& job, const BudgetArguments& budget_arguments, FitArguments arguments,
                Planner& planner, bool json) {
  if (arguments.checkpoint.empty()) arguments.checkpoint = arguments.resume;
  if (auto writable = check_writable(arguments.checkpoint); !writable) {
    return fail(writable.error());
  }
  const auto budget =
      resolve_budget(budget_arguments, smaller_rounds(job), job.make_device({})->alignment());
  if (!budget) return fail(budget.error());
  std::unique_ptr<nn::Dataset> test;
  if (arguments.evaluate) {
    auto loaded = job.load_test_data();
    if (!loaded) return fail(loaded.error());
    test = std::move(*loaded);
  }
  std::optional<PromptEnd> prompt;
  if (arguments.checkpoint.empty()) prompt.emplace();
  TerminalProgress progress;
  auto start = prepare(job, *budget, budget_arguments, planner, arguments, progress);
  if (!start) return fail(start.error());
  const Planned& planned = start->plan.planned;

  Fit fit(job, *budget, start->machine, planner, planned, arguments);
  if (start->checkpoint) {
    if (auto resumed = fit.resume(std::move(*start->checkpoint)); !resumed) {
      return fail(resumed.error());
    }
  }
  const auto stopped = [&] {
    return fail(ErrorCode::interrupted,
                fmt::format("interrupted after {} iterations; {}", fit.next_iteration(),
                            arguments.checkpoint.empty()
                                ? std::string("nothing was saved (use --checkpoint)")
                                : fmt::format("go on with --resume {}", arguments.checkpoint)));
  };
  while (!fit.finished()) {
    if (auto trained = fit.train_epoch(progress); !trained) return fail(trained.error());
    const auto saved = fit.save();
    if (saved && interrupted()) return stopped();
    if (test && !interrupted()) {
      if (auto evaluated = fit.evaluate(*test); !evaluated) return fail(evaluated.error());
      if (saved && interrupted()) return stopped();
    }
    // What was learned is said even where it could not be saved.
    if (!json) print_epoch(fit.epochs().back(), arguments.epochs);
    if (!saved) return fail(saved.error());
  }
  if (json) {
    print(to_json(job, *budget, *start, fit));
  } else {
    say("memory {} of {}, {} an iteration (predicted {}), state crc32 {:08x}\n",
        format_bytes(fit.arena_peak()), format_bytes(budget->device),
        fit.measured() > Nanos{0} ? format_time(fit.measured()) : "not measured",
        format_time(planned.lowered.iteration_time), fit.state_checksum());
    if (const std::string gap = start->gap.text(); !gap.empty()) say("optimality gap {}\n", gap);
  }
  return kOk;
}

}  // namespace tidepool::cli
