#include "train_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/json.h"
#include "learning_report.h"
#include "lower/overhead.h"
#include "measured_json.h"
#include "memory_report.h"
#include "option_names.h"
#include "planning/make_plan.h"
#include "profile_source.h"
#include "rounds_report.h"
#include "schedule/plan_totals.h"
#include "terminal.h"
#include "train/training_observer.h"
#include "train/training_spec.h"

namespace tidepool::cli {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// A time that 0 stands for "not measured" in.
Json ms_or_null(Nanos time) { return time.count() > 0 ? Json(to_ms(time)) : Json(nullptr); }

RoundsOfPlan rounds_report(const TrainingReport& r) {
  return {r.sub_batch,
          r.rounds,
          r.start.chose_sub_batch,
          r.round_statistics,
          r.start.predicted_whole,
          r.kept_whole,
          r.devices > 1};
}

std::string planner_of(const TrainingSpec& spec, const TrainingReport& r) {
  return spec.plan.empty() ? spec.planner.name : r.start.lowered().plan.planner;
}

/// With whose plan a trial put in its place.
std::string named_plan(const TrainingSpec& spec, const TrainingReport& r) {
  const std::string& made_by = r.start.lowered().plan.planner;
  const std::string planner = planner_of(spec, r);
  return made_by == planner ? planner : fmt::format("{} (the plan of {})", planner, made_by);
}

Json epochs_json(const std::vector<EpochReport>& epochs) {
  Json list = Json::array();
  for (const EpochReport& r : epochs) {
    Json row = {
        {"epoch", r.epoch}, {"iterations", r.iterations}, {"loss", r.loss}, {"seconds", r.seconds}};
    if (r.test) {
      row["test_loss"] = r.test->mean_loss;
      row["accuracy"] = r.test->accuracy;
    }
    list.push_back(std::move(row));
  }
  return list;
}

Json trials_json(const std::optional<TrialsReport>& trials) {
  if (!trials) return nullptr;
  Json plans = Json::array();
  for (const TriedPlan& plan : trials->plans) {
    plans.push_back({{"planner", plan.planner},
                     {"corrected", plan.corrected},
                     {"predicted_ms", to_ms(plan.predicted)},
                     {"measured_ms", ms_or_null(plan.measured)},
                     {"measured_iterations", plan.iterations},
                     {"low_ms", ms_or_null(plan.low)},
                     {"high_ms", ms_or_null(plan.high)}});
  }
  Json late = Json::array();  // by stream
  for (const Lateness& stream : trials->late) {
    late.push_back({{"next_ms", to_ms(stream.next)}, {"woken_ms", to_ms(stream.woken)}});
  }
  const auto& earlier = trials->earlier;
  return {{"why_none",
           trials->why_none.empty() ? Json(nullptr) : Json(with_option_names(trials->why_none))},
          {"plans", std::move(plans)},
          {"kept", trials->plans.empty() ? Json(nullptr) : Json(trials->kept)},
          {"cut_short", trials->cut_short},
          {"for_next", trials->for_next},
          {"earlier_ms", earlier ? Json(to_ms(earlier->measured)) : Json(nullptr)},
          {"slowdown_by_copies", {{"out", trials->slowdown.out}, {"in", trials->slowdown.in}}},
          {"begins_late", std::move(late)}};
}

void add_measured(const TrainingSpec& spec, const TrainingReport& r, Json& out) {
  const Lowered& lowered = r.start.lowered();
  const Planned& planned = r.start.plan.planned;
  Json notes = Json::array();
  for (const std::string& note : planned.notes) notes.push_back(with_option_names(note));
  out["host_bytes"] = r.start.running().host_bytes();
  const Bytes host_budget = r.start.budget.host;
  out["host_budget_bytes"] = host_budget > 0 ? Json(host_budget) : Json(nullptr);
  out["measured_iterations"] = r.measured_iterations;
  out["unlimited_ms"] = r.baseline ? ms_or_null(r.baseline->time.median) : Json(nullptr);
  add_share(out, "overhead", r.measured_overhead());
  add_share(out, "prediction_error", r.prediction_error());
  out["plan_ms"] = to_ms(planned.plan_time);
  out["check_ms"] = to_ms(planned.check_time);
  out["streaming"] = lowered.streaming;
  out["iterations_per_graph"] = spec.graph;
  out["closing_ms"] = r.graph ? to_ms(r.graph->closing) : 0.0;
  out["link_bytes_per_second"] = r.start.running_on().to_host().bytes_per_second;
  out["fingerprint"] = r.fingerprint;
  out["data"] = r.data;
  out["iterations"] = r.next_iteration;
  // With epochs their means are there.
  out["losses"] = spec.epochs > 0 ? Json(nullptr) : Json(r.losses);
  out["notes"] = std::move(notes);
  out["learning"] = learning_json(planned.learning.get());
  const bool compared = r.baseline && r.baseline->identical;
  out["other_bits"] = r.other_bits.empty() ? Json(nullptr) : Json(with_option_names(r.other_bits));
  out["identical"] = compared ? Json(*r.baseline->identical) : Json(nullptr);
}

void print_heading(const TrainingSpec& spec, const TrainingReport& r) {
  const Machine& m = r.start.running_on();
  const std::string link =
      r.memory ? fmt::format(" with {}", counted(r.threads, "compute thread"))
      : r.emulated_link
          ? fmt::format(" with {}{}, link {:.0f} MB/s each way{}",
                        counted(r.threads, "compute thread"), r.devices > 1 ? " each" : "",
                        m.to_host().bytes_per_second * 1e-6, r.devices > 1 ? " on one bus" : "")
          : fmt::format(", link {:.1f} GB/s out, {:.1f} GB/s in",
                        m.to_host().bytes_per_second * 1e-9, m.to_device().bytes_per_second * 1e-9);
  say("{}, batch {}, {}, on {}{}{}\n", spec.job.model, spec.job.batch, r.data,
      r.devices > 1 ? fmt::format("{} devices ", r.devices) : "", r.device, link);
}

void print_plan(const TrainingSpec& spec, const TrainingReport& r) {
  const Preparation& start = r.start;
  const Planned& planned = start.plan.planned;
  const PlanTotals totals = r.totals;
  if (limited(start.budget)) {
    say("  budget     {} ({} of the unlimited peak, {})\n", format_bytes(start.budget.device),
        percent(static_cast<double>(start.budget.device) /
                static_cast<double>(start.unlimited_peak)),
        format_bytes(start.unlimited_peak));
  } else {
    say("  budget     none (the unlimited peak is {})\n", format_bytes(start.unlimited_peak));
  }
  const RoundsOfPlan rounds = rounds_report(r);
  if (const std::string text = text_of(rounds); !text.empty()) say("  rounds     {}\n", text);
  if (const std::string warning = warning_of(rounds); !warning.empty()) {
    say("             {}\n", warning);
  }
  if (const std::string mark = mark_of_fake(start.profile); !mark.empty()) {
    say("  profile    {}\n", mark);
  }
  say("  plan       {}: {} swapped, {} out and in an iteration, {} recomputed; {} {}, "
      "proved in {}\n",
      named_plan(spec, r), counted(totals.swapped_tensors, "tensor"),
      format_bytes(totals.swapped_out), counted(totals.recomputed_ops, "op"),
      start.plan.from == "planner" ? "made in" : "read in", format_time(planned.plan_time),
      format_time(planned.check_time));
  for (const std::string& note : planned.notes) {
    say("             {}\n", with_option_names(note));
  }
  if (start.lowered().streaming) {
    say("             streaming: only the running op's tensors stay\n");
  }
  if (r.memory) {
    print_memory(spec, r);
  } else {
    const Bytes host = start.budget.host;
    say("  memory     highest byte used {}{}, host {}{}\n", format_bytes(r.arena_peak),
        r.devices > 1 ? " of a device" : "", format_bytes(start.running().host_bytes()),
        host > 0 ? " of " + format_bytes(host) : "");
    print_file_tier(spec, r);
  }
  if (start.parallel) {
    say("  devices    {}, gradients {}: proved in {}; the part of one alone would take {}\n",
        r.devices, to_text(spec.job.accumulation), format_time(start.parallel->check_time),
        format_time(start.lowered().iteration_time));
  }
}

bool tried_plans(const TrainingReport& r) { return r.trials && !r.trials->plans.empty(); }

void print_times(const TrainingReport& r) {
  const auto overhead = r.measured_overhead();
  const std::string medians = fmt::format(", median{} of {}{}", r.baseline ? "s" : "",
                                          counted(r.measured_iterations, "iteration"),
                                          tried_plans(r) ? " after the trials" : "");
  std::string off = "not measured";
  if (r.measured_iterations == 0) {
    say("  time       not measured: every iteration was on cold caches (more --iterations)\n");
  } else if (overhead) {
    say("  time       {} an iteration, {} without a {}: overhead {}{}\n",
        format_time(r.measured.median), format_time(r.baseline->time.median),
        r.memory ? "limit" : "budget", overhead->text(), medians);
  } else {
    say("  time       {} an iteration{}\n", format_time(r.measured.median), medians);
  }
  if (const auto error = r.prediction_error()) off = "off by " + error->text();
  std::string of = r.branches > 0 ? " of that" : "";
  if (r.devices > 1) of = " of the part of one device alone";
  if (r.branches > 0) {
    off += fmt::format("; {} where none of {} branches is skipped",
                       format_time(r.start.iteration_time()), r.branches);
  }
  say("  predicted  {}, {}; overhead {}{}{}\n", format_time(r.predicted), off,
      percent(r.start.predicted_overhead()), of,
      r.baseline && r.memory ? ": the rest is ops that run slower inside the limit"
      : r.baseline           ? ""
                             : " by prediction (--baseline measures it)");
}

/// Says how far the times spread that trials measured: the gap is known no better.
std::string gap_text(const TrainingReport& r) {
  const std::string gap = with_option_names(r.start.gap.text());
  if (gap.empty() || !r.start.now || r.measured.count == 0) return gap;
  const double spread = overhead(r.measured.high, r.measured.low);
  const bool busy = r.start.gap.gap && spread > *r.start.gap.gap && spread > kQuietMachine;
  return fmt::format("{}; by times measured here, which spread by {}{}", gap, percent(spread),
                     busy ? ": busy machine" : "");
}

/// What leaving the algorithms to the planner is worth, where that is known.
void print_choice(const TrainingReport& r) {
  const std::string worth =
      worth_of_choosing(r.start.predicted_unlimited, r.start.fastest_unlimited);
  if (!worth.empty()) say("             {}\n", worth);
}

void print_trials(const TrainingReport& r, const char* before) {
  if (!r.trials) return;
  say("{} {}\n", before, with_option_names(r.trials->text()));
}

void print_iterations(const TrainingSpec& spec, const TrainingReport& r) {
  print_heading(spec, r);
  print_plan(spec, r);
  print_times(r);
  print_choice(r);
  print_trials(r, "  trials    ");
  if (const std::string gap = gap_text(r); !gap.empty()) {
    say("  optimality gap {}\n", gap);
  }
  if (r.graph) {
    say("  graph      {} in one; closing it adds {} to each (simulated)\n",
        counted(r.graph->iterations, "iteration"), format_time(r.graph->closing));
  }
  if (!r.losses.empty()) {
    say("  loss       {:.4f} -> {:.4f} over {}\n", r.losses.front(), r.losses.back(),
        counted(r.losses.size(), "iteration"));
  }
  say("  state      crc32 {:08x}\n", r.state_crc32);
  if (!r.other_bits.empty()) {
    say("             not the last bits of the defaults: {}\n", with_option_names(r.other_bits));
  }
  if (r.baseline && r.baseline->identical) {
    say("  identical  {}\n", *r.baseline->identical
                                 ? "yes: losses and all weights, bit for bit those of the same "
                                   "rounds, algorithms and threads without a budget"
                                 : "NO: losses or weights differ from unlimited training");
  }
}

void print_epochs_end(const TrainingSpec& spec, const TrainingReport& r) {
  if (r.memory) print_memory(spec, r);
  print_file_tier(spec, r);
  const Bytes host = r.start.budget.host;
  say("memory {}{}{}, {} an iteration (predicted {}), state crc32 {:08x}\n",
      format_bytes(r.arena_peak),
      limited(r.start.budget) ? " of " + format_bytes(r.start.budget.device) : "",
      host > 0 ? fmt::format(", host {} of {}", format_bytes(r.start.running().host_bytes()),
                             format_bytes(host))
               : "",
      r.measured.count > 0 ? format_time(r.measured.median) : "not measured",
      format_time(r.predicted), r.state_crc32);
  print_trials(r, "trials");
  const RoundsOfPlan rounds = rounds_report(r);
  if (const std::string text = text_of(rounds); !text.empty()) say("rounds {}\n", text);
  if (const std::string warning = warning_of(rounds); !warning.empty()) say("{}\n", warning);
  if (const std::string gap = gap_text(r); !gap.empty()) {
    say("optimality gap {}\n", gap);
  }
}

}  // namespace

Json to_json(const TrainingSpec& spec, const TrainingReport& r) {
  Json out = {
      {"schema", 1},
      {"model", spec.job.model},
      {"batch", spec.job.batch},
      {"device", r.device},
      {"devices", r.devices},
      {"accumulation", r.devices > 1 ? Json(to_text(spec.job.accumulation)) : Json(nullptr)},
      {"planner", planner_of(spec, r)},
      {"plan_of", r.start.lowered().plan.planner},
      {"budget_bytes", limited(r.start.budget) ? Json(r.start.budget.device) : Json(nullptr)},
      {"unlimited_peak_bytes", r.start.unlimited_peak},
      {"footprint_bytes", largest_device(r.start.running())},
      {"arena_peak_bytes", r.arena_peak},
      {"measured_ms", ms_or_null(r.measured.median)},
      {"predicted_ms", to_ms(r.predicted)},
      {"branches", r.branches},
      {"predicted_all_branches_ms", to_ms(r.start.iteration_time())},
      {"predicted_overhead", r.start.predicted_overhead()},
      {"predicted_unlimited_ms", to_ms(r.start.predicted_unlimited)},
      {"fastest_algorithms_unlimited_ms", to_ms(r.start.fastest_unlimited)},
      {"swapped_tensors", r.totals.swapped_tensors},
      {"swap_bytes", r.totals.swapped_out},
      {"recomputed_ops", r.totals.recomputed_ops},
      {"profile", to_json(r.start.profile)},
      {"plan_from", r.start.plan.from},
      {"next_iteration", r.next_iteration},
      {"state_crc32", r.state_crc32}};
  add_to(out, rounds_report(r));
  r.start.gap.add_to(out);
  add_measured(spec, r, out);
  out["memory"] = memory_json(r.memory, r.file);
  out["file_tier"] = file_tier_json(spec, r);
  out["trials"] = trials_json(r.trials);
  out["not_saved"] = r.not_saved ? Json(with_option_names(r.not_saved->message)) : Json(nullptr);
  out["epochs"] = spec.epochs > 0 ? epochs_json(r.epochs) : Json(nullptr);
  return out;
}

void print_report(const TrainingSpec& spec, const TrainingReport& r) {
  spec.epochs > 0 ? print_epochs_end(spec, r) : print_iterations(spec, r);
}

void print_epoch(const EpochReport& r) {
  say("epoch {}/{}", r.epoch, r.epochs);
  if (r.iterations < r.all_iterations) {
    say(", {} of its {}", r.iterations, counted(r.all_iterations, "iteration"));
  }
  say(": loss {:.4f}", r.loss);
  if (r.test) {
    const char* const answers = r.test->pixels ? " of the pixels" : " of the tokens";
    say(", test loss {:.4f}, accuracy {:.2f} %{}", r.test->mean_loss, 100 * r.test->accuracy,
        r.test->answers > 1 ? answers : "");
  }
  say(", {:.0f} s\n", r.seconds);
}

}  // namespace tidepool::cli
