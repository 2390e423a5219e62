// tidepool train: trains inside the budget, with the same training without a budget interleaved.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "algorithm_choice.h"
#include "fit.h"
#include "infeasible.h"
#include "ir/load_profile.h"
#include "job.h"
#include "overhead.h"
#include "planners/registry.h"
#include "prompt_end.h"
#include "proven_gap.h"
#include "runtime/profiler.h"
#include "schedule/plan_totals.h"
#include "sim/simulate.h"
#include "training.h"

namespace tidepool::cli {
namespace {

struct TrainArguments {
  JobArguments job;
  BudgetArguments budget;
  std::int64_t iterations = 10;
  bool verify = false;
  std::int64_t graph = 0;  ///< iterations captured in one graph
  FitArguments fit;
};

/// What an iteration takes longer by simulation when nothing may be in flight from one group of
/// `per_graph` iterations to the next.
Nanos closing_cost(const Program& program, const Lowered& lowered, const Machine& machine,
                   std::int64_t per_graph) {
  const Simulation group = simulate(program, lowered.plan, machine, static_cast<int>(per_graph));
  Nanos end{0};
  for (const auto& iteration : group.iterations) {
    for (const Span& span : iteration) end = std::max(end, span.end);
  }
  return end / per_graph - lowered.iteration_time;
}

/// Bit for bit: losses and every persistent tensor.
bool identical(const Program& program, const nn::TrainingRunner& a, const nn::TrainingRunner& b) {
  const auto& x = a.losses();
  const auto& y = b.losses();
  if (x.size() != y.size() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0) {
    return false;
  }
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    if (!program.tensors[t].persistent) continue;
    if (a.value(static_cast<TensorId>(t)) != b.value(static_cast<TensorId>(t))) return false;
  }
  return true;
}

struct Outcome {
  Outcome(const Job& j, const Machine& m, const Budget& b, const Planned& p, std::string name)
      : job(j), machine(m), budget(b), planned(p), planner(std::move(name)) {}

  const Job& job;
  const Machine& machine;
  const Budget& budget;
  const Planned& planned;
  std::string planner;
  Bytes unlimited_peak = 0;
  Bytes arena_peak = 0;
  Nanos unlimited{};
  Nanos measured{};
  std::size_t measured_iterations = 0;  ///< of either training; 0: the two times are not known
  Nanos predicted_unlimited{};
  ProvenGap gap;
  std::int64_t per_graph = 0;
  Nanos closing{};  ///< what closing the graph adds to an iteration, by simulation
  std::vector<float> losses;
  std::optional<bool> identical;
  std::int64_t iterations = 0;

  [[nodiscard]] double measured_overhead() const { return overhead(measured, unlimited); }
  [[nodiscard]] double predicted_overhead() const {
    return overhead(planned.lowered.iteration_time, predicted_unlimited);
  }
  /// Of the prediction, as a share of the measured time.
  [[nodiscard]] double prediction_error() const {
    if (measured.count() == 0) return 0;
    return to_ms(planned.lowered.iteration_time) / to_ms(measured) - 1;
  }
};

/// Fewer measured iterations than these say nothing of an overhead.
constexpr std::size_t kFewIterations = 3;

void print_json(const Outcome& o) {
  const auto known = [&](double x) { return o.measured_iterations > 0 ? Json(x) : Json(nullptr); };
  const Lowered& lowered = o.planned.lowered;
  const PlanTotals totals = totals_of(o.job.training().program, lowered.plan);
  Json out = {{"schema", 1},
              {"model", o.job.arguments().model},
              {"batch", o.job.arguments().batch},
              {"device", o.job.kind().name},
              {"planner", o.planner},
              {"budget_bytes", o.budget.device},
              {"unlimited_peak_bytes", o.unlimited_peak},
              {"footprint_bytes", lowered.plan.device_bytes()},
              {"arena_peak_bytes", o.arena_peak},
              {"host_bytes", lowered.plan.host_bytes()},
              {"measured_iterations", o.measured_iterations},
              {"unlimited_ms", known(to_ms(o.unlimited))},
              {"measured_ms", known(to_ms(o.measured))},
              {"predicted_ms", to_ms(lowered.iteration_time)},
              {"overhead", known(o.measured_overhead())},
              {"predicted_overhead", o.predicted_overhead()},
              {"prediction_error", known(o.prediction_error())},
              {"swapped_tensors", totals.swapped_tensors},
              {"swap_bytes", totals.swapped_out},
              {"recomputed_ops", totals.recomputed_ops},
              {"plan_ms", to_ms(o.planned.plan_time)},
              {"check_ms", to_ms(o.planned.check_time)},
              {"streaming", lowered.streaming},
              {"iterations_per_graph", o.per_graph},
              {"closing_ms", to_ms(o.closing)},
              {"link_bytes_per_second", o.machine.to_host().bytes_per_second},
              {"fingerprint", o.job.fingerprint()},
              {"data", o.job.data().name()},
              {"iterations", o.iterations},
              {"losses", o.losses},
              {"notes", o.planned.notes}};
  o.gap.add_to(out);
  out["identical"] = o.identical ? Json(*o.identical) : Json(nullptr);
  print(out);
}

void print_times(const Outcome& o) {
  const auto percent = [](double x) { return fmt::format("{:.1f} %", 100 * x); };
  std::string off = "not measured";
  if (o.measured_iterations == 0) {
    say("  time       not measured: every iteration was on cold caches (more --iterations)\n");
  } else {
    say("  time       {} an iteration, {} without a budget: overhead {}{}\n",
        format_time(o.measured), format_time(o.unlimited), percent(o.measured_overhead()),
        o.measured_iterations < kFewIterations
            ? fmt::format(", of {} iteration{} each: too few to tell it from noise",
                          o.measured_iterations, o.measured_iterations == 1 ? "" : "s")
            : "");
    off = percent(std::abs(o.prediction_error())) + " off";
  }
  say("  predicted  {} ({}), overhead {}\n", format_time(o.planned.lowered.iteration_time), off,
      percent(o.predicted_overhead()));
}

void print_text(const Outcome& o) {
  const Lowered& lowered = o.planned.lowered;
  const PlanTotals totals = totals_of(o.job.training().program, lowered.plan);
  const auto percent = [](double x) { return fmt::format("{:.1f} %", 100 * x); };
  const Machine& m = o.machine;
  const bool emulated = o.job.kind().calibrate == nullptr;
  say("{}, batch {}, {}, on {}{}\n", o.job.arguments().model, o.job.arguments().batch,
      o.job.data().name(), o.job.kind().name,
      emulated
          ? fmt::format(" with {} compute thread{}, link {:.0f} MB/s each way", o.job.threads(),
                        o.job.threads() == 1 ? "" : "s", m.to_host().bytes_per_second * 1e-6)
          : fmt::format(", link {:.1f} GB/s out, {:.1f} GB/s in",
                        m.to_host().bytes_per_second * 1e-9,
                        m.to_device().bytes_per_second * 1e-9));
  say("  budget     {} ({} of the unlimited peak, {})\n", format_bytes(o.budget.device),
      percent(static_cast<double>(o.budget.device) / static_cast<double>(o.unlimited_peak)),
      format_bytes(o.unlimited_peak));
  say("  plan       {}: {} tensors swapped, {} out and in an iteration, {} ops recomputed; made in "
      "{}, proved in {}\n",
      o.planner, totals.swapped_tensors, format_bytes(totals.swapped_out), totals.recomputed_ops,
      format_time(o.planned.plan_time), format_time(o.planned.check_time));
  for (const std::string& note : o.planned.notes) say("             {}\n", note);
  if (lowered.streaming) say("             streaming: only the running op's tensors stay\n");
  say("  memory     highest byte used {}, host {}\n", format_bytes(o.arena_peak),
      format_bytes(lowered.plan.host_bytes()));
  print_times(o);
  if (const std::string gap = o.gap.text(); !gap.empty()) say("  optimality gap {}\n", gap);
  if (o.per_graph > 0) {
    say("  graph      {} iteration{} in one; closing it adds {} to each (simulated)\n", o.per_graph,
        o.per_graph == 1 ? "" : "s", format_time(o.closing));
  }
  if (!o.losses.empty()) {
    say("  loss       {:.4f} -> {:.4f} over {} iterations\n", o.losses.front(), o.losses.back(),
        o.losses.size());
  }
  if (o.identical) {
    say("  identical  {}\n", *o.identical ? "yes: losses and all weights, bit for bit"
                                          : "NO: losses or weights differ from unlimited training");
  }
}

tl::unexpected<Error> interrupted_after(std::int64_t iterations) {
  return fail(ErrorCode::interrupted,
              fmt::format("interrupted after {} iterations; nothing was saved", iterations));
}

Result<int> train(const TrainArguments& arguments, bool json) {
  auto planner = make_planner(arguments.budget.planner);
  if (!planner) return fail(planner.error());
  auto made = Job::make(arguments.job);
  if (!made) return fail(made.error());
  Job& job = *made;
  if (arguments.fit.epochs > 0) {
    return fit(job, arguments.budget, arguments.fit, **planner, json);
  }
  const std::unique_ptr<Device> device = job.make_device({});
  const Bytes alignment = device->alignment();
  if (arguments.graph > 0 && !device->captures()) {
    return fail(ErrorCode::usage,
                fmt::format("--graph: device '{}' does not capture graphs", job.kind().name));
  }
  const auto budget = resolve_budget(arguments.budget, smaller_rounds(job), alignment);
  if (!budget) return fail(budget.error());

  TerminalProgress progress;
  const std::int64_t total = arguments.iterations;
  // Blocks of the two trainings alternate, so that noise of the machine hits both.
  constexpr std::int64_t kBlock = 4;
  const std::int64_t block = arguments.graph > 0 ? 2 * arguments.graph : kBlock;
  const auto block_of = [&](std::int64_t done) { return std::min(block, total - done); };
  const auto tell = [&](double offset, const char* which) {
    return [&progress, total, offset, which](std::int64_t i, Nanos time) {
      const double done =
          (static_cast<double>(i + 1) + offset) / (2.0 * static_cast<double>(total));
      progress.update(std::min(done, 1.0), fmt::format("{}: iteration {}/{}, {}", which, i + 1,
                                                       total, format_time(time)));
    };
  };

  const PromptEnd prompt;
  // The first block without a budget is also the profile the plan is made from.
  if (job.policy() == AlgorithmPolicy::fastest) {
    const auto machine = job.machine(Nanos{1'000'000'000});
    if (!machine) return fail(machine.error());
    if (auto done = measure(job, *machine, no_limit(), 2, true, progress); !done) {
      return fail(done.error());
    }
  }
  const auto any_machine = job.machine(Nanos{1'000'000'000});
  if (!any_machine) return fail(any_machine.error());
  // One choice for both trainings, made before the times it follows from are measured again.
  const AlgorithmChoice choice =
      fitting(job.program(), choose_algorithms(job.program(), job.policy()), *budget, alignment);
  auto unlimited_planned = unlimited_plan(job.program(), *any_machine, choice);
  if (!unlimited_planned) return fail(unlimited_planned.error());
  auto runner = job.make_runner();
  if (!runner) return fail(runner.error());
  Training unlimited(job, *any_machine, unlimited_planned->lowered.plan, std::move(*runner));
  unlimited.executor().enter();
  unlimited.executor().record_timings();
  std::int64_t unlimited_done = unlimited.run(block_of(0), tell(0, "without a budget")).iterations;
  if (interrupted()) return interrupted_after(0);
  auto timings = unlimited.executor().timings();
  unlimited.executor().stop_timings();
  if (timings.size() > 1) timings.erase(timings.begin());
  apply_timings(unlimited_planned->lowered.plan, timings, job.program());
  const Nanos compute = tidepool::compute_time(job.program(), choice);

  const bool is_reference = job.needs_reference() && job.is_reference();
  if (is_reference) remember_reference(job, compute);
  const auto machine = is_reference ? job.machine(compute) : device_machine(job, progress);
  if (!machine) return fail(machine.error());

  // Measured anyway, so not looked for in the cache; the next `plan` or `train --epochs` may.
  Cache::of(arguments.fit.profiling.cache)
      .keep_if_better(
          {{job.fingerprint(), job.program(), *machine},
           {static_cast<int>(timings.size()), job.policy() == AlgorithmPolicy::fastest}});

  PlannerOptions options = planner_options(arguments.job, arguments.budget);
  options.progress = &progress;
  auto planned = plan_with(choice, **planner, job.program(), *machine, *budget, options);
  if (!planned) {
    return fail(with_least_host_budget(planned.error(), **planner,
                                       restrict_to(choice, job.program()), *machine, *budget,
                                       options));
  }

  progress.update(static_cast<double>(unlimited_done) / (2.0 * static_cast<double>(total)),
                  "how far the plan may be from the best");
  const auto gap = proven_gap(job.program(), *machine, planned->lowered, budget->device, options);
  if (!gap) return fail(gap.error());

  auto budgeted_runner = job.make_runner();
  if (!budgeted_runner) return fail(budgeted_runner.error());
  Training budgeted(job, *machine, planned->lowered.plan, std::move(*budgeted_runner),
                    arguments.graph);
  budgeted.executor().enter();
  std::int64_t done = 0;
  while (done < total && !interrupted()) {
    done +=
        budgeted.run(block_of(done), tell(static_cast<double>(unlimited_done), "inside the budget"))
            .iterations;
    if (interrupted() || unlimited_done >= total) continue;
    unlimited_done +=
        unlimited.run(block_of(unlimited_done), tell(static_cast<double>(done), "without a budget"))
            .iterations;
  }
  if (interrupted()) return interrupted_after(done);
  unlimited.executor().exit();
  budgeted.executor().exit();

  Outcome outcome(job, *machine, *budget, *planned, arguments.budget.planner);
  outcome.unlimited_peak = unlimited_peak(job.program(), alignment);
  outcome.arena_peak = budgeted.executor().arena_peak();
  outcome.unlimited = unlimited.median();
  outcome.measured = budgeted.median();
  outcome.measured_iterations = std::min(budgeted.measured(), unlimited.measured());
  outcome.predicted_unlimited = unlimited_time(job.program(), *machine, choice);
  outcome.gap = *gap;
  if (arguments.graph > 0) {
    outcome.per_graph = arguments.graph;
    outcome.closing = closing_cost(job.program(), planned->lowered, *machine, arguments.graph);
  }
  outcome.losses = budgeted.runner().losses();
  outcome.iterations = done;
  if (arguments.verify) {
    outcome.identical = identical(job.program(), unlimited.runner(), budgeted.runner());
  }
  json ? print_json(outcome) : print_text(outcome);
  if (outcome.identical && !*outcome.identical) {
    inform("tidepool: the results differ from unlimited training\n");
    return static_cast<int>(ErrorCode::check_failed);
  }
  return kOk;
}

}  // namespace

void add_train(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "train a model inside a memory budget");
  add_job_options(*command, arguments->job);
  add_budget_options(*command, arguments->budget);
  command->add_option("--iterations", arguments->iterations, "iterations to train")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  add_fit_options(*command, arguments->fit);
  add_cache_options(*command, arguments->fit.profiling.cache, true);
  command
      ->add_flag("--verify", arguments->verify,
                 "compare losses and all weights bit for bit with the unlimited run")
      ->excludes("--epochs");
  command
      ->add_option("--graph", arguments->graph,
                   "GPUs: capture this many iterations in one CUDA graph; transfers then do not "
                   "cross from one graph to the next")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{64}))
      ->excludes("--epochs");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer(R"(
overhead is the time of an iteration over the time without a budget, minus one; the optimality gap is
what the plan's predicted overhead may be above the least one, in the same measure (see `tidepool
bound`). Iterations on cold caches are not measured. The bound takes up to --time-limit before the training
starts; it is unknown where the plan recomputes or the limit is up before. With --graph, closing the
graph comes on top.

Examples:
  tidepool train vgg16 --batch 100 --budget 60% --verify
  tidepool train vgg11 --batch 64 --budget 150MiB --planner autoswap --iterations 20 --json
  tidepool train vgg11 --budget 60% --epochs 2 --checkpoint vgg11.ckpt
  tidepool train vgg11 --budget 50% --epochs 2 --resume vgg11.ckpt
  tidepool train vgg11 --budget 60% --epochs 2 --reprofile --replan
  tidepool train vgg11 --epochs 2 --profile vgg11.profile.json
  tidepool train tiny-vgg --batch 16 --budget 70% --data synthetic --link 500MB)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      catch_interrupts();
      auto code = train(*arguments, context.json);
      return code ? *code : report(code.error(), context.json);
    };
  });
}

}  // namespace tidepool::cli
