#include "transparent_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/json.h"
#include "lower/overhead.h"
#include "measured_json.h"
#include "memory_report.h"
#include "option_names.h"
#include "terminal.h"

namespace tidepool::cli {
namespace {

Json measured_ms(Nanos time) { return time.count() > 0 ? Json(to_ms(time)) : Json(nullptr); }

std::string time_or(Nanos time, const char* none) {
  return time.count() > 0 ? format_time(time) : none;
}

/// Takes iterations on a plan; the training without a budget ran in another turn.
std::optional<MeasuredShare> overhead_of(const TransparentReport& r) {
  if (!r.baseline || r.planned.count == 0 || r.baseline->time.count == 0) return std::nullopt;
  return measured_overhead(r.planned, r.baseline->time);
}

void print_plan_found(const TransparentReport& r) {
  const SessionReport& s = r.session;
  if (s.patterns == 0) {
    say("  plan       none{}\n", s.why_no_plan.empty()
                                     ? ": no iteration was seen to repeat (more --iterations)"
                                     : ": " + with_option_names(s.why_no_plan));
    return;
  }
  say("  plan       {} found, the last of {}; planned in {}; {} left a plan\n",
      counted(s.patterns, "iteration"), counted(s.iteration_calls, "call"), format_time(r.planning),
      counted(s.left_plans, "call"));
  say("  planned    {} of {} ({:.0f} %){}\n", r.planned_iterations,
      counted(r.iterations, "iteration"), 100 * r.planned_share(),
      r.first_planned > 0 ? fmt::format(", the first is number {}", r.first_planned) : "");
}

}  // namespace

Json to_json(const TrainingSpec& spec, const TransparentReport& r) {
  const SessionReport& s = r.session;
  const bool compared = r.baseline && r.baseline->identical;
  Json out = {
      {"schema", 1},
      {"model", spec.job.model},
      {"batch", spec.job.batch},
      {"device", r.device},
      {"data", r.data},
      {"threads", r.threads},
      {"planner", spec.planner.name},
      {"transparent", true},
      {"link_bytes_per_second",
       r.memory ? Json(nullptr) : Json(r.machine.to_away().bytes_per_second)},
      {"budget_bytes", r.budget},
      {"unlimited_peak_bytes", r.unlimited_peak},
      {"arena_peak_bytes", s.device_peak},
      {"iterations", r.iterations},
      {"planned_iterations", r.planned_iterations},
      {"planned_share", r.planned_share()},
      {"first_planned_iteration", r.first_planned > 0 ? Json(r.first_planned) : Json(nullptr)},
      {"patterns", s.patterns},
      {"iteration_calls", s.iteration_calls},
      {"left_plans", s.left_plans},
      {"planned_ops", s.planned_ops},
      {"reactive_ops", s.reactive_ops},
      {"why_no_plan",
       s.why_no_plan.empty() ? Json(nullptr) : Json(with_option_names(s.why_no_plan))},
      {"unplanned_ms", measured_ms(r.unplanned)},
      {"planned_ms", measured_ms(r.planned.median)},
      {"predicted_ms", measured_ms(s.predicted)},
      {"planning_ms", to_ms(r.planning)},
      {"stalled_ms", to_ms(s.stalled)},
      {"moved_bytes", s.moved},
      {"unlimited_ms", r.baseline ? measured_ms(r.baseline->time.median) : Json(nullptr)},
      {"memory", memory_json(r.memory, r.file)},
      {"losses", r.losses},
      {"state_crc32", r.state_crc32},
      {"identical", compared ? Json(*r.baseline->identical) : Json(nullptr)}};
  add_share(out, "overhead", overhead_of(r));
  return out;
}

void print_report(const TrainingSpec& spec, const TransparentReport& r) {
  const SessionReport& s = r.session;
  say("{}, batch {}, {}, op by op on {} with {}{}\n", spec.job.model, spec.job.batch, r.data,
      r.device, counted(r.threads, "compute thread"),
      r.memory ? ""
               : fmt::format(", link {:.0f} MB/s each way",
                             r.machine.to_away().bytes_per_second * 1e-6));
  say("  budget     {} ({:.1f} % of the unlimited peak, {})\n", format_bytes(r.budget),
      100 * static_cast<double>(r.budget) / static_cast<double>(r.unlimited_peak),
      format_bytes(r.unlimited_peak));
  r.memory ? print_memory(spec, r)
           : say("  memory     highest byte used {}\n", format_bytes(s.device_peak));
  print_plan_found(r);
  const auto overhead = overhead_of(r);
  const bool has_plan = r.planned.count > 0;
  const std::string planned =
      has_plan ? fmt::format("{} an iteration on a plan (predicted {}), ",
                             format_time(r.planned.median), time_or(s.predicted, "none"))
               : "";
  say("  time       {}{} {}{}\n", planned, time_or(r.unplanned, "none"),
      has_plan ? "without" : "an iteration without a plan",
      r.baseline
          ? fmt::format("; {} without a budget{}", time_or(r.baseline->time.median, "not measured"),
                        overhead ? ": overhead " + overhead->text() : "")
          : "");
  say("  copies     {} moved, planned ops waited {} for them in all\n", format_bytes(s.moved),
      format_time(s.stalled));
  if (!r.losses.empty()) {
    say("  loss       {:.4f} -> {:.4f} over {}\n", r.losses.front(), r.losses.back(),
        counted(r.losses.size(), "iteration"));
  }
  say("  state      crc32 {:08x}\n", r.state_crc32);
  if (r.baseline && r.baseline->identical) {
    say("  identical  {}\n", *r.baseline->identical
                                 ? "yes: losses and all weights, bit for bit those of the same "
                                   "rounds, algorithms and threads without a budget"
                                 : "NO: losses or weights differ from unlimited training");
  }
}

}  // namespace tidepool::cli
