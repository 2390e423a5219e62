// tidepool train: trains inside the budget.
#include "train/train.h"

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "context.h"
#include "file_tier_options.h"
#include "option_names.h"
#include "planners/settings.h"
#include "record_options.h"
#include "spec_options.h"
#include "spill_options.h"
#include "terminal_observer.h"
#include "train/training_observer.h"
#include "train/training_spec.h"
#include "train/transparent.h"
#include "train_report.h"
#include "transparent_report.h"

namespace tidepool::cli {
namespace {

struct TrainArguments {
  TrainingSpec spec;
  bool verify = false;
  bool baseline = false;
  bool transparent = false;
};

/// Results of an epoch as soon as they are there.
class EpochPrinter : public TerminalObserver {
 public:
  explicit EpochPrinter(bool json) : json_(json) {}
  void epoch(const EpochReport& report) override {
    if (!json_) print_epoch(report);
  }

 private:
  bool json_;
};

int exit_code_of(const std::optional<Baseline>& baseline) {
  if (!baseline || baseline->identical.value_or(true)) return kOk;
  inform("tidepool: the results differ from unlimited training\n");
  return exit_code(ErrorCode::check_failed);
}

int train_transparently(const TrainingSpec& spec, bool json) {
  TerminalObserver observer;
  const auto trained = run_transparently(spec, observer);
  if (!trained) return report(trained.error(), json);
  json ? print(to_json(spec, *trained)) : print_report(spec, *trained);
  return exit_code_of(trained->baseline);
}

int train(const TrainArguments& a, bool json) {
  TrainingSpec spec = a.spec;
  if (a.baseline) spec.comparison = Comparison::times;
  if (a.verify) spec.comparison = Comparison::bits;
  if (a.transparent) return train_transparently(spec, json);
  EpochPrinter observer(json);
  const auto trained = run_training(spec, observer);
  if (!trained) return report(trained.error(), json);
  json ? print(to_json(spec, *trained)) : print_report(spec, *trained);
  if (trained->not_saved) {
    inform("tidepool: {}\n", with_option_names(trained->not_saved->message));
    return exit_code(trained->not_saved->code);
  }
  return exit_code_of(trained->baseline);
}

void add_length_options(CLI::App& command, TrainArguments& a) {
  TrainingSpec& spec = a.spec;
  command.add_option("--iterations", spec.iterations, "iterations to train")
      ->check(whole_number(1, std::int64_t{1} << 40))
      ->capture_default_str();
  command.add_option("--epochs", spec.epochs, "train whole epochs instead; evaluates after each")
      ->check(whole_number(1, 1'000'000))
      ->excludes("--iterations");
  command
      .add_option("--checkpoint", spec.checkpoint,
                  "with --epochs: save the training here after every epoch and on Ctrl-C "
                  "(default: the file of --resume)")
      ->needs("--epochs");
  command
      .add_option("--resume", spec.resume,
                  "with --epochs: go on from a checkpoint, bit for bit, also under another budget "
                  "or planner, and go on saving to it")
      ->needs("--epochs");
  command
      .add_flag("--overwrite", spec.overwrite,
                "with --checkpoint: replace a checkpoint that is there and not resumed")
      ->needs("--checkpoint");
  command
      .add_flag_callback(
          "--no-evaluate", [&spec] { spec.evaluate = false; }, "with --epochs: skip the test split")
      ->needs("--epochs");
}

void add_comparison_options(CLI::App& command, TrainArguments& a) {
  command
      .add_flag("--baseline", a.baseline,
                "also train without a budget, in turn with this, and measure the overhead; takes "
                "the memory for both (with --memory before this, in a process of its own)")
      ->excludes("--epochs");
  command
      .add_flag(
          "--verify", a.verify,
          "also train without a budget, as --baseline does, and compare losses and all weights "
          "bit for bit")
      ->excludes("--epochs");
  command
      .add_option("--graph", a.spec.graph,
                  "GPUs: capture this many iterations in one CUDA graph; transfers then do not "
                  "cross from one graph to the next")
      ->check(whole_number(1, 64))
      ->excludes("--epochs");
}

void add_transparent_option(CLI::App& command, TrainArguments& a) {
  command.add_flag(
      "--transparent", a.transparent,
      "call the ops one by one through a Session, as a program without a graph would: the plan is "
      "found while it trains");
}

constexpr const char* kFooter = R"(
Nothing exceeds the budget, profiling included; only --baseline and --verify train without one
beside it. overhead is the time of an iteration over the time without a budget, minus one: measured
with --baseline or --verify, else predicted. The optimality gap is what the plan's predicted overhead
may be above the least one, in the same measure (see `tidepool bound`). Iterations on cold caches are
not measured; where plans are tried, the measured time is that of the plan that is kept, after the
trials. The bound takes up to --time-limit before the training starts; where that is not
enough a weaker one takes its place. With --graph, closing the graph comes on top. In --json,
unlimited_ms and overhead are null without --baseline or --verify, identical without --verify;
predicted_overhead is always there. With --devices the budget is each device's, and plan, overhead
and optimality gap are those of one device with its part of the bus; the result is that of one device
with the same algorithms and --sub-batch of a part's samples, where each part is one round.
Percentages of --budget are of the peak load of the whole batch, whatever rounds it runs in; overhead
is against the fastest rounds that are allowed, without a budget. --resume and --plan go on in the rounds of their file unless --sub-batch says otherwise, which is then refused.

Examples:
  tidepool train tiny-vgg --budget 60% --data synthetic --verify
  tidepool train tiny-vgg --budget 2MiB --data synthetic --planner tide --time-limit 2s --json
  tidepool train tiny-vgg --budget 60% --data synthetic --link 500MB --baseline
  tidepool train tiny-vgg --budget 60% --data synthetic --epochs 1 --checkpoint tiny.ckpt
  tidepool train tiny-vgg --budget 50% --data synthetic --epochs 2 --resume tiny.ckpt
  tidepool profile tiny-vgg --data synthetic -o tiny.profile.json
  tidepool train tiny-vgg --budget 60% --data synthetic --profile tiny.profile.json
  tidepool plan --profile tiny.profile.json --budget 60% -o tiny.plan.json
  tidepool train tiny-vgg --data synthetic --plan tiny.plan.json
  tidepool train tiny-vgg-plain --data synthetic --devices 2 --budget 60% --verify
  tidepool train tiny-squeezenet --data synthetic --batch 64 --budget 45% --planner none --sub-batch auto
  tidepool train tiny-vgg --data synthetic --budget 50% --host-budget 6MiB --file-tier measured --verify
  tidepool train tiny-vgg --data synthetic --budget 60% --transparent --verify
  tidepool train unet --data synthetic --batch 2 --memory 240MiB --spill /var/tmp --transparent
  tidepool train tiny-gpt --data text --batch 16 --budget 60% --optimizer adamw --verify
  printf '{"model": "tiny-vgg", "data": "synthetic", "verify": true}' > job.json
  tidepool train --spec job.json --budget 60%
  tidepool train vgg16 --batch 100 --budget 60%   # takes minutes on few cores)";

}  // namespace

void add_train(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "train a model inside a memory budget");
  TrainingSpec& spec = arguments->spec;
  add_job_options(*command, spec.job);
  add_devices_options(*command, spec.job);
  add_size_options(*command, spec.budget);
  add_file_tier_options(*command, spec.job.device.file_tier);
  add_memory_options(*command, spec.budget.memory, spec.job.device.spill);
  add_planner_options(*command, spec.planner);
  add_planner_files(*command, spec.planner);
  add_length_options(*command, *arguments);
  command->add_option("--profile", spec.profile,
                      "plan from this profile file of this device instead of measuring");
  command->add_option(
      "--plan", spec.plan,
      "run this plan file of this device instead of planning, in its own budget unless "
      "--budget is given");
  command->add_flag_callback(
      "--no-trials", [&spec] { spec.trials = false; },
      "with auto, tide and planners that correct their plans: go on with the plan as it was made, "
      "and try no others");
  add_cache_options(*command, spec.cache);
  add_replan_option(*command, spec.cache);
  add_comparison_options(*command, *arguments);
  add_transparent_option(*command, *arguments);
  command->add_flag("--json", context.json, "one JSON object on stdout");
  Ignored beside_a_plan{"--plan",
                        {"--replan", "--planner", "--algorithms", "--time-limit", "--evaluations"}};
  for (const OptionRecord& record : all_planner_options()) {
    beside_a_plan.others.push_back(option_name(record));
  }
  refuse_ignored(*command, {{"--profile", {"--reprofile"}},
                            std::move(beside_a_plan),
                            {"--transparent", {"--no-trials", "--replan", "--no-evaluate"}}});
  command->footer(kFooter);
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      catch_interrupts();
      return train(*arguments, context.json);
    };
  });
}

}  // namespace tidepool::cli
