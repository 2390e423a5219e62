// moDNN's evaluation: memory and its lower bounds (figure 9), time and copies at 12 GB (figures 10
// and 11), time over budgets (figure 12) and each technique by itself (figures 13 and 14). Power
// and energy (figures 15 and 16) are of a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/at.h"
#include "base/json.h"
#include "ir/load_profile.h"
#include "modnn_devices.h"
#include "modnn_links.h"
#include "modnn_work.h"
#include "nn/models/model.h"
#include "notes.h"
#include "planners/published/modnn/task_memory.h"
#include "planning/algorithm_choice.h"

namespace tidepool::reproduce {
namespace {

constexpr double kAboutSeconds = 2;  // of a plan, about, for what is said of the time left
constexpr std::int64_t kSearchEvaluations =
    300;  // of one plan that searches, unless a time is asked for
/// Figure 12, whose axis is not printed in the paper. The first is the card's memory by name.
constexpr std::array<Bytes, 7> kModnnBudgets{kNominalMemory, 8'000'000'000, 6'000'000'000,
                                             5'000'000'000,  4'000'000'000, 3'000'000'000,
                                             2'000'000'000};

struct ModnnSystem {
  const char* field;  ///< of a row
  const char* planner;
  bool rounds;  ///< chooses the sub-batch
};
constexpr ModnnSystem kModnnSystems[] = {{"modnn", "modnn", true},
                                         {"vdnn", "vdnn-dyn", false},
                                         {"vdnn_plus", "vdnn-plus", true},
                                         {"vdnn_plus_live", "vdnn-plus-live", true},
                                         {"vdnn_static", "vdnn-plus", false},
                                         {"auto", "auto", true}};

PlannerOptions modnn_options(const Arguments& a) {
  PlannerOptions options;
  options.seed = a.seed;
  if (a.time_limit > Nanos{0}) {
    options.time_limit = a.time_limit;
  } else {
    options.evaluation_limit = kSearchEvaluations;
  }
  options.algorithms = AlgorithmPolicy::fastest;  // where a planner does not choose
  options.may.streaming = true;
  options.stop = interrupted;
  return options;
}

/// Over the ideal, minus one.
double slowdown(Nanos time, Nanos ideal) { return to_seconds(time) / to_seconds(ideal) - 1; }

double ratio(Bytes of, Bytes over) { return static_cast<double>(of) / static_cast<double>(over); }

/// Adds a system's figures to `of`, null where it has no plan.
void add_point(Json& of, const char* system, const std::optional<ModnnPoint>& point, Nanos ideal) {
  of["slowdown"][system] = point ? Json(slowdown(point->time, ideal)) : Json();
  of["transferred_bytes"][system] = point ? Json(point->transferred) : Json();
  of["moved_bytes"][system] = point ? Json(point->moved) : Json();
  of["sub_batch"][system] = point ? Json(point->sub_batch) : Json();
}

/// Every system in one budget: fields slowdown, transferred_bytes (moved_bytes: without what an
/// iteration with everything kept copies, too) and sub_batch, each by system; null where it has no
/// plan.
Result<Json> at_budget(ModnnWork& work, Bytes budget, const Arguments& a, TableReport& report) {
  Json of = {{"budget_bytes", budget}};
  for (const ModnnSystem& system : kModnnSystems) {
    report.begin_row(
        fmt::format("{} in {}, {}", work.model(), format_bytes(budget), system.planner));
    const auto point = plan_point(work, system.planner, budget, system.rounds, modnn_options(a));
    if (!point) return fail(point.error());
    add_point(of, system.field, *point, work.ideal_time());
  }
  return of;
}

/// Of one technique alone: memory of the ideal over its own, and time over the ideal's.
Json technique_json(double memory, std::optional<double> time) {
  return {{"memory_reduction", memory}, {"time", time ? Json(*time) : Json(nullptr)}};
}

/// Figures 13 and 14: each technique where it takes the least memory.
Result<Json> techniques(ModnnWork& work, const Arguments& a) {
  const Program& whole = work.whole();
  const Bytes alignment = work.machine().alignment();
  const Bytes ideal = work.ideal_bytes();
  const double ideal_time = to_seconds(work.ideal_time());
  const auto one = work.one_by_one();
  if (!one) return fail(one.error());
  Json all;
  all["sub_batch"] = technique_json(ratio(ideal, one->memory), to_seconds(one->time) / ideal_time);
  // Nothing but offloading and prefetching: the batch at once, with the fastest algorithms.
  const auto fastest = fastest_algorithms(whole);
  const Program fixed = restrict_to(fastest, whole);
  const Bytes least = modnn::bound_with_weights(fixed, alignment).bytes;
  PlannerOptions options = modnn_options(a);
  options.may.algorithms = false;
  options.may.sub_batch = false;
  options.may.streaming = false;
  const Bytes budget = std::max(least, work.machine().device_memory());
  const auto offloaded = plan_point(work, "modnn", budget, false, options);
  if (!offloaded) return fail(offloaded.error());
  all["offloading"] = technique_json(
      ratio(ideal, least),
      *offloaded ? std::optional(to_seconds((*offloaded)->time) / ideal_time) : std::nullopt);
  all["offloading"]["budget_bytes"] = budget;
  const auto plain = least_workspace_algorithms(whole);
  const Bytes without = modnn::ideal_memory(restrict_to(plain, whole), alignment);
  all["algorithms"] =
      technique_json(ratio(ideal, without), to_seconds(compute_time(whole, plain)) / ideal_time);
  return all;
}

/// Equations 6 and 7 at one sample a round.
Result<void> add_bounds(ModnnWork& work, Json& row) {
  const auto one = work.one_round(1);
  if (!one) return fail(one.error());
  const Bytes alignment = work.machine().alignment();
  const auto with = modnn::bound_with_weights(*one, alignment);
  // The paper's graph of tasks ends before weights are updated.
  Program tasks = *one;
  std::erase_if(tasks.ops, [](const Op& op) { return op.phase == Phase::update; });
  const auto without = modnn::bound_without_weights(tasks, alignment);
  row["weight_bytes"] = modnn::weight_bytes(*one, alignment);
  row["lower_bound_bytes"] = with.bytes;
  row["lower_bound_task"] = one->ops[at(with.task.value())].name;
  row["lower_bound_weights_out_bytes"] = without.bytes;
  row["lower_bound_weights_out_task"] = tasks.ops[at(without.task.value())].name;
  return {};
}

/// The whole batch in rounds of one sample, in exactly the bytes of equation 6.
Result<void> add_rounds_of_one(ModnnWork& work, const Arguments& a, Json& row,
                               TableReport& report) {
  report.begin_row(fmt::format("{} in rounds of one sample, in the bound", work.model()));
  const auto budget = row["lower_bound_bytes"].get<Bytes>();
  const auto point = plan_in_rounds_of(work, 1, "modnn", budget, modnn_options(a));
  if (!point) return fail(point.error());
  row["rounds_of_one"] = {
      {"budget_bytes", budget},
      {"slowdown", *point ? Json(slowdown((*point)->time, work.ideal_time())) : Json()}};
  return {};
}

void print_line(const Json& row, const Json& point, TableReport& report) {
  Json line = {{"network", row["network"]},
               {"budget", format_bytes(point["budget_bytes"].get<Bytes>())},
               {"sub_batch", point["sub_batch"]["modnn"]}};
  for (const auto& [system, value] : point["slowdown"].items()) {
    line[system] = value;
    line[system + "_copies"] = point["transferred_bytes"][system];
  }
  report.line(line);
}

Result<Json> modnn_row(ModnnWork& work, const std::vector<Bytes>& budgets, const Arguments& a,
                       TableReport& report) {
  const PublishedModnn& p = work.published();
  Json row = {{"network", p.model},
              {"batch", p.batch},
              {"ideal_bytes", work.ideal_bytes()},
              {"published_ideal_bytes", p.ideal > 0 ? Json(p.ideal) : Json(nullptr)},
              {"published_lower_bound_bytes", p.lower_bound > 0 ? Json(p.lower_bound) : Json()},
              {"ideal_ms", to_ms(work.ideal_time())}};
  if (auto bounds = add_bounds(work, row); !bounds) return fail(bounds.error());
  if (auto met = add_rounds_of_one(work, a, row, report); !met) return fail(met.error());
  const auto card = at_budget(work, work.machine().device_memory(), a, report);
  if (!card) return fail(card.error());
  for (const char* field : {"slowdown", "transferred_bytes", "moved_bytes", "sub_batch"})
    row[field] = (*card)[field];
  print_line(row, *card, report);
  row["budgets"] = Json::array({*card});
  for (const Bytes budget : budgets) {
    if (interrupted()) return row;
    auto point = at_budget(work, budget, a, report);
    if (!point) return fail(point.error());
    print_line(row, *point, report);
    row["budgets"].push_back(std::move(*point));
  }
  report.begin_row(fmt::format("{}: each technique alone", work.model()));
  const auto smallest = smallest_at_once(work, "vdnn-dyn", modnn_options(a));
  if (!smallest) return fail(smallest.error());
  row["vdnn_smallest_bytes"] = *smallest;
  auto alone = techniques(work, a);
  if (!alone) return fail(alone.error());
  row["techniques"] = std::move(*alone);
  const Json& slower = row["slowdown"]["modnn"];
  std::optional<Nanos> modnn_alone;
  if (!slower.is_null()) {
    modnn_alone = from_seconds((1 + slower.get<double>()) * to_seconds(work.ideal_time()));
  }
  auto four = speedups_of_four(work, modnn_alone, modnn_options(a), report);
  if (!four) return fail(four.error());
  row["speedup_4"] = std::move(*four);
  return row;
}

/// Slowdown at 12 GB of those that do not search, and four cards, with one stream of data each.
Result<Json> on_one_stream(const PublishedModnn& published, const Machine& machine,
                           const Arguments& a, TableReport& report) {
  auto work = ModnnWork::make(published, machine);
  if (!work) return fail(work.error());
  Json of;
  for (const ModnnSystem& system : kModnnSystems) {
    if (std::string_view(system.planner) == "auto") continue;
    report.begin_row(fmt::format("{} with one stream of data, {}", work->model(), system.planner));
    const auto point =
        plan_point(*work, system.planner, machine.device_memory(), system.rounds, modnn_options(a));
    if (!point) return fail(point.error());
    add_point(of, system.field, *point, work->ideal_time());
  }
  const auto four = four_cards(published, machine, {machine.device_memory()}, modnn_options(a));
  if (!four) return fail(four.error());
  of["speedup_4"] =
      *four ? Json(to_seconds(work->ideal_time()) / to_seconds((*four)->time)) : Json();
  return of;
}

Result<std::vector<Bytes>> wanted_budgets(const Arguments& a) {
  if (a.limits.empty()) return std::vector<Bytes>(kModnnBudgets.begin(), kModnnBudgets.end());
  std::vector<Bytes> budgets;
  for (const std::string& text : a.limits) {
    const auto bytes = parse_bytes(text);
    if (!bytes) return fail(ErrorCode::usage, "--limits: " + bytes.error().message);
    budgets.push_back(*bytes);
  }
  return budgets;
}

void add_modnn_constants(const Machine& m, const Arguments& a, TableReport& report) {
  add_machine(m, report);
  if (a.time_limit > Nanos{0}) {
    report.constant(
        "time_limit_ms", to_ms(a.time_limit),
        fmt::format("auto, vdnn-plus-live: at most {} for one plan, so that rows depend "
                    "on the machine",
                    format_time(a.time_limit)));
  } else {
    report.constant(
        "evaluations", kSearchEvaluations,
        fmt::format("auto: {} evaluations a plan; no clock decides a row", kSearchEvaluations));
  }
  using Form = Column::Form;
  report.columns({{"network", "network"},
                  {"  budget", "budget"},
                  {"sub-batch", "sub_batch"},
                  {"modnn", "modnn", Form::percent},
                  {"vdnn", "vdnn", Form::percent},
                  {"vdnn+", "vdnn_plus", Form::percent},
                  {"auto", "auto", Form::percent},
                  {"vdnn+ live", "vdnn_plus_live", Form::percent},
                  {"modnn MiB", "modnn_copies", Form::mib},
                  {"vdnn MiB", "vdnn_copies", Form::mib}});
}

}  // namespace

Result<void> run_modnn(const Arguments& a, TableReport& report) {
  const auto machine = modnn_machine(DataStreams::two);
  const auto one_stream = modnn_machine(DataStreams::one);
  if (!machine || !one_stream) return fail(machine ? one_stream.error() : machine.error());
  const auto networks = wanted_of<PublishedModnn>(kPublishedModnn, a, report);
  if (!networks) return fail(networks.error());
  const auto budgets = wanted_budgets(a);
  if (!budgets) return fail(budgets.error());
  add_modnn_constants(*machine, a, report);
  report.expect(networks->size() * (1 + budgets->size()), a.limit(kAboutSeconds));
  std::vector<Json> rows;
  for (const PublishedModnn& p : *networks) {
    if (interrupted()) break;
    auto work = ModnnWork::make(p, *machine);
    if (!work) return fail(work.error());
    auto row = modnn_row(*work, *budgets, a, report);
    if (row && !interrupted()) {
      auto published_stream = on_one_stream(p, *one_stream, a, report);
      if (!published_stream) return fail(published_stream.error());
      (*row)["one_stream"] = std::move(*published_stream);
      auto links = over_links(p, *machine, *budgets, modnn_options(a), report);
      if (!links) return fail(links.error());
      (*row)["links"] = std::move(*links);
    }
    if (!row) {
      if (row.error().code == ErrorCode::interrupted) break;
      return fail(row.error());
    }
    if (interrupted()) break;
    report.record(*row);
    rows.push_back(std::move(*row));
  }
  add_modnn_notes(rows, report);
  return {};
}

}  // namespace tidepool::reproduce
