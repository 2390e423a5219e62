#include "api/ask.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "base/at.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/quantity.h"
#include "check/check.h"
#include "cost/machine_json.h"
#include "ir/load_profile.h"
#include "ir/program_json.h"
#include "lower/expand.h"
#include "lower/overhead.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planning/file_subject.h"
#include "planning/plan_subject.h"
#include "report/report_format.h"

namespace tidepool::api {
namespace {

/// Tells the caller how far it is, and asks when to stop.
class CallersObserver : public Observer {
 public:
  explicit CallersObserver(const PlanAsk& ask) : ask_(ask) {}
  void update(double fraction, std::string_view what) override {
    if (ask_.progress != nullptr) ask_.progress->update(fraction, what);
  }
  [[nodiscard]] bool stop_requested() const override { return ask_.stop.requested(); }

 private:
  const PlanAsk& ask_;
};

/// Most living bytes and workspace of a steady iteration, addresses not counted.
Bytes load_of(const PlanFile& file) { return make_timeline(file).peak_load; }

Result<PlannerSpec> spec_of(const PlanAsk& ask) {
  PlannerSpec spec;
  spec.name = ask.planner;
  if (ask.time_limit > Nanos{0}) spec.time_limit = ask.time_limit;
  spec.evaluations = ask.evaluation_limit;
  if (auto known = make_planner(spec.name); !known) return fail(known.error());
  auto values = parse_settings(spec.name, ask.settings);
  if (!values) return fail(values.error());
  spec.values = std::move(*values);
  return spec;
}

/// With numbers that make sense.
Result<void> check_ask(const PlanAsk& ask) {
  const auto refuse = [](const char* what) {
    return fail(ErrorCode::usage, fmt::format("{} must not be below 0", what));
  };
  if (ask.device < 0) return refuse("the device budget");
  if (ask.host < 0) return refuse("the host budget");
  if (ask.time_limit < Nanos{0}) return refuse("the time limit");
  if (ask.evaluation_limit < 0) return refuse("the evaluation limit");
  return {};
}

Answer answer_of(const PlanAsk& ask, const SubjectPlan& plan) {
  const Lowered& lowered = plan.lowered();
  Answer answer;
  answer.file = plan_file(plan);
  answer.plan_time = plan.obtained.planned.plan_time;
  answer.check_time = plan.obtained.planned.check_time;
  answer.streaming = lowered.streaming;
  answer.stopped = plan.stopped;
  for (const std::string& note : plan.obtained.planned.notes) answer.notes += note + "\n";
  if (!ask.prove_gap || plan.gap.unknown == "interrupted") return answer;
  if (plan.gap.least_overhead) {
    const double least =
        static_cast<double>(plan.unlimited.count()) * (1 + *plan.gap.least_overhead);
    answer.bound =
        std::min(Nanos{static_cast<Nanos::rep>(std::floor(least))}, answer.file.iteration_time);
  } else {
    answer.notes += "no bound: " + plan.gap.unknown + "\n";
  }
  return answer;
}

/// Inside so many device bytes, addresses included; 0: no limit.
Result<Answer> plan_within(Subject& subject, const PlanAsk& ask, const PlannerSpec& spec,
                           Bytes device) {
  CallersObserver observer(ask);
  const Cache cache({.off = true}, observer);
  BudgetSpec asked;
  if (device > 0) asked.device = {.bytes = device};
  asked.host = ask.host;
  const auto budget = budget_for(subject, asked, spec.name);
  if (!budget) return fail(budget.error());
  PlanTask task{spec, true};
  auto plan = plan_subject(subject, *budget, task, cache, observer);
  if (!plan) return fail(plan.error());
  if (ask.prove_gap && on_one_device(subject.profile.program)) {
    task.planner.time_limit = gap_time_limit(spec) / 2;
    if (auto proven = prove_gap(task, *plan, observer); !proven) return fail(proven.error());
  }
  return answer_of(ask, *plan);
}

/// Whether the budget that an error names is enough whatever was asked: the streaming schedule fits
/// where any does.
bool is_enough(const Machine& machine, const PlanAsk& ask, const PlannerSpec& spec,
               const Error& error) {
  const bool much_host = ask.host == 0 && machine.spaces[at(machine.host())].bytes == 0;
  return !error.of_host && much_host && ask.swap && ask.recompute && meets_every_budget(spec.name);
}

/// What was asked, in another budget: only whether there is a plan counts.
Result<Answer> plan_instead(Subject& subject, PlanAsk ask, const PlannerSpec& spec, Bytes device,
                            Bytes host) {
  ask.prove_gap = false;
  ask.progress = nullptr;
  ask.host = host;
  return plan_within(subject, ask, spec, device);
}

/// The same error with a budget that was tried; without one where nothing that was tried is enough.
Error with_tried_budget(Subject& subject, const PlanAsk& ask, const PlannerSpec& spec,
                        Error error) {
  if (error.code != ErrorCode::infeasible || !error.smallest_feasible) return error;
  if (is_enough(subject.profile.machine, ask, spec, error)) return error;
  const auto fits = [&](Bytes bytes) {
    return error.of_host ? plan_instead(subject, ask, spec, ask.device, bytes).has_value()
                         : plan_instead(subject, ask, spec, bytes, ask.host).has_value();
  };
  if (fits(*error.smallest_feasible)) return error;
  error.smallest_feasible.reset();
  const auto unlimited = error.of_host ? plan_instead(subject, ask, spec, ask.device, 0)
                                       : plan_instead(subject, ask, spec, 0, ask.host);
  if (unlimited) {
    const Plan& plan = unlimited->file.plan;
    const Bytes bytes = error.of_host ? plan.host_bytes() : plan.device_bytes();
    if (bytes > 0 && fits(bytes)) error.smallest_feasible = bytes;
  }
  error.message +=
      error.smallest_feasible
          ? fmt::format("; with what this planner may decide {} B ({}) are",
                        *error.smallest_feasible, format_bytes_up(*error.smallest_feasible))
          : "; with what this planner may decide no budget is known to be enough";
  return error;
}

/// The tightest limit on addresses, up to a quarter more, with which a plan's load fits.
Result<Answer> plan_by_load(Subject& subject, const PlanAsk& ask, const PlannerSpec& spec) {
  Result<Answer> first = plan_within(subject, ask, spec, ask.device);
  if (first || ask.device == 0 || first.error().code != ErrorCode::infeasible) return first;
  for (const double factor : {1.03, 1.1, 1.25}) {
    const auto device = static_cast<Bytes>(std::floor(static_cast<double>(ask.device) * factor));
    auto looser = plan_within(subject, ask, spec, device);
    if (looser && load_of(looser->file) <= ask.device) return looser;
  }
  return first;
}

}  // namespace

Result<Program> plannable_on(const Machine& machine, Program program) {
  const std::string name = program.name;
  auto timed = timed_on(machine, std::move(program), name);
  if (!timed) return timed;
  if (std::string why = why_unplannable(*timed); !why.empty()) {
    return fail(ErrorCode::bad_input, fmt::format("{}: {}", name, why));
  }
  return timed;
}

Result<Answer> ask_plan(const Program& program, const Machine& machine, const PlanAsk& ask) {
  if (auto sound = check_ask(ask); !sound) return fail(sound.error());
  const auto spec = spec_of(ask);
  if (!spec) return fail(spec.error());
  auto timed = plannable_on(machine, program);
  if (!timed) return fail(timed.error());
  Subject subject;
  subject.profile = {"program " + timed->name, std::move(*timed), machine};
  subject.terms = {.choose_algorithms = ask.algorithms,
                   .seed = ask.seed,
                   .swap = ask.swap,
                   .recompute = ask.recompute};
  auto answer = ask.addresses_count ? plan_within(subject, ask, *spec, ask.device)
                                    : plan_by_load(subject, ask, *spec);
  if (answer) return answer;
  return fail(with_tried_budget(subject, ask, *spec, answer.error()));
}

Result<Answer> read_answer(std::string_view text, std::string_view name) {
  auto file = read_plan(text, name);
  if (!file) return fail(file.error());
  const auto proof = check(file->program, file->plan, check_limits(file->machine, file->budget()));
  if (!proof) {
    return fail(proof.error().code, fmt::format("{}: {}", name, proof.error().message));
  }
  Answer answer;
  answer.file = std::move(*file);
  return answer;
}

Result<Program> read_program(std::string_view text, std::string_view name) {
  return read_json(text, name, [](const JsonCursor& json) { return program_from_json(json); });
}

Result<Machine> read_machine(std::string_view text, std::string_view name) {
  return read_json(text, name, [](const JsonCursor& json) { return machine_from_json(json); });
}

std::string plan_text(const PlanFile& file) { return to_json(file).dump(1) + "\n"; }

Result<std::string> picture(const PlanFile& file, std::string_view format) {
  std::vector<std::string_view> names;
  for (const ReportFormat& known : report_formats()) {
    if (known.name == format) return known.render(file, make_timeline(file));
    names.push_back(known.name);
  }
  return fail(unknown_name("format", format, names));
}

Result<const char*> names_of(std::string_view what) {
  const auto lines = [](const auto& list) {
    std::string text;
    for (const auto& item : list) text += std::string(item.name) + "\n";
    return text;
  };
  static const std::string planners = lines(planner_list());
  static const std::string machines = lines(machine_presets());
  static const std::string formats = lines(report_formats());
  if (what == "planners") return planners.c_str();
  if (what == "machines") return machines.c_str();
  if (what == "formats") return formats.c_str();
  constexpr std::array<std::string_view, 3> kWhat{"planners", "machines", "formats"};
  return fail(unknown_name("list", what, kWhat));
}

}  // namespace tidepool::api
