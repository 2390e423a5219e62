#include "api/ask.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "api/settings.h"
#include "base/json.h"
#include "base/nearest.h"
#include "check/check.h"
#include "cost/machine_json.h"
#include "ir/load_profile.h"
#include "ir/program_json.h"
#include "lower/expand.h"
#include "lower/overhead.h"
#include "planners/registry.h"
#include "planning/budget.h"
#include "planning/obtain_plan.h"
#include "planning/proven_gap.h"
#include "report/report_format.h"

namespace tidepool::api {
namespace {

/// Of the one program there is, with the options of the caller.
PlannerOptions options_of(const PlanAsk& ask, const PlannerSpec& spec) {
  PlannerOptions options;
  options.seed = ask.seed;
  options.may.sub_batch = false;
  options.may.algorithms = ask.algorithms;
  options.may.swap = ask.swap;
  options.may.recompute = ask.recompute;
  options.may.streaming = true;
  options.time_limit = spec.time_limit.value_or(usual_time_limit(spec.name));
  options.usual_time = !spec.time_limit;
  options.evaluation_limit = spec.evaluations;
  options.swarm = spec.swarm;
  options.modnn = spec.modnn;
  options.q_learning.episodes = spec.learning.episodes;
  options.q_learning.uniform = spec.learning.uniform;
  options.q_learning.improves = !spec.learning.published;
  if (spec.learning.published) {
    options.q_learning.reach = 1;
    options.q_learning.decisions_a_step = 1;
  }
  options.stop = ask.stop;
  options.progress = ask.progress;
  return options;
}

/// Tells nobody anything but when to stop.
class Silent : public Observer {
 public:
  explicit Silent(const Stop& stop) : stop_(stop) {}
  [[nodiscard]] bool stop_requested() const override { return stop_.requested(); }

 private:
  const Stop& stop_;
};

/// Most living bytes and workspace of a steady iteration, addresses not counted.
Bytes load_of(const PlanFile& file) { return make_timeline(file).peak_load; }

Result<PlannerSpec> spec_of(const PlanAsk& ask) {
  PlannerSpec spec;
  spec.name = ask.planner;
  if (ask.time_limit > Nanos{0}) spec.time_limit = ask.time_limit;
  spec.evaluations = ask.evaluation_limit;
  if (auto known = make_planner(spec.name); !known) return fail(known.error());
  if (auto applied = apply_settings(ask.settings, spec); !applied) return fail(applied.error());
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

/// One program on one machine, with one planner.
struct Call {
  const Profile& subject;
  const PlanAsk& ask;
  const PlannerSpec& spec;
  PlannerOptions options;

  [[nodiscard]] Result<Answer> within(Bytes device) const;
  [[nodiscard]] Result<Answer> by_load(Bytes device) const;
  [[nodiscard]] Answer answer_of(const Budget& budget, ObtainedPlan&& obtained) const;
};

Result<Answer> Call::within(Bytes device) const {
  BudgetSpec asked;
  if (device > 0) asked.device = {.bytes = device};
  asked.host = ask.host;
  const Machine& machine = subject.machine;
  const auto budget = resolve_budget(asked, {subject.program}, machine.alignment());
  if (!budget) {
    return fail(for_planner(spec.name, budget.error(), subject.program, machine.alignment(),
                            options.algorithms));
  }
  auto planner = make_planner(spec.name);
  if (!planner) return fail(planner.error());
  Silent observer(ask.stop);
  const Cache cache({.off = true}, observer);
  const PlanRequest request{subject, *budget, spec.name, options};
  auto obtained = obtain_plan(**planner, request, cache, true, observer);
  if (!obtained) return fail(obtained.error());
  return answer_of(*budget, std::move(*obtained));
}

/// The tightest limit on addresses, up to a quarter more, with which a plan's load fits.
Result<Answer> Call::by_load(Bytes device) const {
  Result<Answer> first = within(device);
  if (first || device == 0 || first.error().code != ErrorCode::infeasible) return first;
  for (const double factor : {1.03, 1.1, 1.25}) {
    auto looser = within(static_cast<Bytes>(std::floor(static_cast<double>(device) * factor)));
    if (looser && load_of(looser->file) <= device) return looser;
  }
  return first;
}

Answer Call::answer_of(const Budget& budget, ObtainedPlan&& obtained) const {
  const Lowered& lowered = obtained.planned.lowered;
  Answer answer;
  answer.file = {
      subject.fingerprint,  subject.program,
      subject.machine,      limited(budget) ? budget.device : lowered.plan.device_bytes(),
      budget.host,          lowered.iteration_time,
      lowered.compute_time, lowered.strategy,
      lowered.plan};
  if (on_one_device(subject.program)) {
    const auto policy = ask.algorithms ? AlgorithmPolicy::fastest : options.algorithms;
    answer.file.unlimited = unlimited_time(subject.program, subject.machine, policy);
  }
  answer.plan_time = obtained.planned.plan_time;
  answer.check_time = obtained.planned.check_time;
  answer.streaming = lowered.streaming;
  answer.stopped = ask.stop.requested();
  for (const std::string& note : obtained.planned.notes) answer.notes += note + "\n";
  if (!ask.prove_gap || answer.stopped || !answer.file.unlimited) return answer;
  const Nanos limit = ask.time_limit > Nanos{0} ? ask.time_limit / 2 : kGapTimeLimit / 2;
  const auto gap = proven_gap(subject.program, subject.machine, lowered, *answer.file.unlimited,
                              budget, {limit, ask.stop});
  if (!gap) {
    answer.notes += gap.error().message + "\n";
  } else if (gap->least_overhead) {
    const double least =
        static_cast<double>(answer.file.unlimited->count()) * (1 + *gap->least_overhead);
    answer.bound =
        std::min(Nanos{static_cast<Nanos::rep>(std::floor(least))}, answer.file.iteration_time);
  } else {
    answer.notes += "no bound: " + gap->unknown + "\n";
  }
  return answer;
}

}  // namespace

Result<Program> timed_on(const Machine& machine, Program program) {
  const bool timed = std::ranges::any_of(program.ops, [](const Op& op) {
    return std::ranges::any_of(op.algorithms, [](const Algorithm& x) { return x.time > Nanos{0}; });
  });
  if (!timed) {
    if (machine.compute.peak_flops == 0) {
      return fail(ErrorCode::bad_input,
                  fmt::format("{}: no op has a time, and machine '{}' has no compute model",
                              program.name, machine.name));
    }
    apply_cost_model(machine, program);
  }
  if (auto times = validate_times(program, machine); !times) return fail(times.error());
  if (std::string why = why_unplannable(program); !why.empty()) {
    return fail(ErrorCode::bad_input, fmt::format("{}: {}", program.name, why));
  }
  return program;
}

Result<Answer> ask_plan(const Program& program, const Machine& machine, const PlanAsk& ask) {
  if (auto sound = check_ask(ask); !sound) return fail(sound.error());
  const auto spec = spec_of(ask);
  if (!spec) return fail(spec.error());
  auto timed = timed_on(machine, program);
  if (!timed) return fail(timed.error());
  const Profile subject{"program " + timed->name, std::move(*timed), machine};
  const Call call{subject, ask, *spec, options_of(ask, *spec)};
  return ask.addresses_count ? call.within(ask.device) : call.by_load(ask.device);
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
