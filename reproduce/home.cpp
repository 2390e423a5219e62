// HOME's evaluation: the largest batch and its throughput of each system (table 2), throughput over
// batches (figure 6), where the time goes (figure 7), and its search (table 3, figures 8 and 9).
#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "home_search.h"
#include "home_work.h"
#include "nn/models/model.h"
#include "notes.h"
#include "planners/registry.h"
#include "planning/make_plan.h"

namespace tidepool::reproduce {
namespace {

constexpr const char* kHomeMachine = "rtx2080ti";
constexpr std::int32_t kPublishedParticles = 500;
// Of one plan of a search for a batch: policies that HOME's evaluator times, and strategies that
// the timing engine does, which take longer.
constexpr std::int64_t kPolicies = 25'000'000;
constexpr std::int64_t kEvaluations = 2'000;
constexpr double kBatchResolution = 0.01;
constexpr int kSearchOverPlan = 10;    ///< limit of one of HOME's own searches, over that of a plan
constexpr double kGuessedSeconds = 2;  ///< of a plan, for the progress line

struct HomeContext {
  const Arguments& arguments;
  Machine machine{};
  HomeCalibration calibration{};
  Budget budget{};
  std::vector<HomeSystem> systems{};

  /// Evaluations end every search, so that rows repeat; with --time-limit the clock does.
  [[nodiscard]] PlannerOptions options(std::string_view planner) const {
    PlannerOptions options;
    options.seed = arguments.seed;
    if (arguments.time_limit > Nanos{0}) {
      options.time_limit = arguments.time_limit;
    } else {
      options.evaluation_limit = planner == "home" ? kPolicies : kEvaluations;
    }
    options.values.set("pso_particles", std::int64_t{kPublishedParticles});
    options.algorithms = AlgorithmPolicy::least_workspace;
    options.stop = interrupted;
    options.values.set("pso_random_start", true);
    return options;
  }
  [[nodiscard]] Result<Profile> profile(std::string_view model, std::int64_t batch) const {
    return home_profile(model, batch, machine, calibration.time_scale);
  }
};

class RowProgress : public ProgressSink {
 public:
  RowProgress(TableReport& report, std::string what) : report_(report), what_(std::move(what)) {}
  void update(double /*fraction*/, std::string_view what) override {
    report_.begin_row(fmt::format("{}: {}", what_, what));
  }

 private:
  TableReport& report_;
  std::string what_;
};

const PublishedFit* published_fit(const PublishedHome& p, std::string_view system) {
  if (system == "pytorch") return &p.pytorch;
  if (system == "capuchin") return &p.capuchin;
  return system == "home" ? &p.home : nullptr;
}

Json published_json(const PublishedHome& p) {
  Json all = Json::object();
  for (const HomeSystem& s : kHomeSystems) {
    if (const PublishedFit* fit = published_fit(p, s.name)) {
      all[std::string(s.name)] = {{"max_batch", static_cast<std::int64_t>(fit->max_batch)},
                                  {"samples_per_s", fit->samples_per_s}};
    }
  }
  return all;
}

Json found_json(const FitFound& found) {
  if (!found.largest) return nullptr;
  Json curve = Json::array();
  for (const FitTrial& t : found.trials) {
    if (t.fits) curve.push_back({{"batch", t.batch}, {"samples_per_s", t.samples_per_s()}});
  }
  return {{"max_batch", found.largest->batch},
          {"samples_per_s", found.largest->samples_per_s()},
          {"fastest_batch", found.fastest->batch},
          {"fastest_samples_per_s", found.fastest->samples_per_s()},
          {"curve", std::move(curve)}};
}

/// The line of the table that people read.
Json line_of(const PublishedHome& p, std::string_view system, const Json& found) {
  Json line = {{"model", p.model}, {"system", system}};
  if (!found.is_null()) {
    line["max_batch"] = found["max_batch"];
    line["samples_per_s"] = fmt::format("{:.0f}", found["samples_per_s"].get<double>());
    line["fastest_batch"] = found["fastest_batch"];
    line["fastest"] = fmt::format("{:.0f}", found["fastest_samples_per_s"].get<double>());
  }
  if (const PublishedFit* fit = published_fit(p, system)) {
    line["published_max_batch"] = fmt::format("{:.0f}", fit->max_batch);
    if (!found.is_null() && !found["at_published_batch_samples_per_s"].is_null()) {
      line["at_published"] =
          fmt::format("{:.0f}", found["at_published_batch_samples_per_s"].get<double>());
    }
    line["published_samples_per_s"] = fmt::format("{:.0f}", fit->samples_per_s);
  }
  return line;
}

/// Figure 7's batch of a model; 0: it has none.
std::int64_t breakdown_batch(std::string_view model) {
  for (const PublishedBreakdown& b : kPublishedBreakdowns) {
    if (b.model == model) return b.batch;
  }
  return 0;
}

Json share_or_null(double share) { return share < 0 ? Json(nullptr) : Json(share); }

/// Of every system with a planner, at the published batch.
Result<Json> breakdowns(const HomeContext& context, std::string_view model, TableReport& report) {
  const std::int64_t batch = breakdown_batch(model);
  Json all = {{"batch", batch}};
  const auto profile = context.profile(model, batch);
  if (!profile) return fail(profile.error());
  for (const HomeSystem& system : context.systems) {
    if (system.planner.empty()) continue;
    report.begin_row(fmt::format("{}, {}: where the time goes at {}", model, system.name, batch));
    FixedWorkload workload(profile->program);
    const auto planned = make_plan(**make_planner(system.planner), workload, context.machine,
                                   context.budget, context.options(system.planner));
    if (interrupted()) return all;
    Json parts = nullptr;
    if (planned && !planned->lowered.streaming) {
      const Breakdown b = breakdown_of(*profile, context.budget, *planned);
      const auto share = [&](Nanos part) { return to_ms(part) / to_ms(b.total); };
      parts = {{"iteration_ms", to_ms(b.total)},
               {"compute", share(b.compute())},
               {"overlap", share(b.overlap)},
               {"stall", share(b.stall)},
               {"recompute", share(b.recompute)}};
    }
    Json published = nullptr;
    for (const PublishedBreakdown& p : kPublishedBreakdowns) {
      if (p.model != model || p.system != system.name) continue;
      published = {{"overlap", share_or_null(p.overlap)},
                   {"stall", share_or_null(p.stall)},
                   {"recompute", share_or_null(p.recompute)}};
    }
    all[std::string(system.name)] = {{"published", published}, {"measured", parts}};
  }
  return all;
}

std::string parts_text(const Json& parts, const char* none) {
  if (parts.is_null()) return none;
  std::string text;
  for (const char* part : {"compute", "overlap", "stall", "recompute"}) {
    if (!parts.contains(part) || parts[part].is_null()) continue;
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", part,
                        100 * parts[part].get<double>());
  }
  return text.empty() ? none : text;
}

void note_breakdowns(std::string_view model, const Json& all, TableReport& report) {
  for (const auto& [system, parts] : all.items()) {
    if (!parts.is_object()) continue;
    report.note(fmt::format("figure 7, {} at {}, {}: {}; published: {}", model,
                            all["batch"].get<std::int64_t>(), system,
                            parts_text(parts["measured"], "no plan"),
                            parts_text(parts["published"], "nothing")));
  }
}

/// HOME's search at three batches between the largest of PyTorch and its own: figures of the one
/// in the middle, and how well it predicts at all three.
void add_search(const HomeContext& context, const PublishedHome& p, Json& row,
                TableReport& report) {
  const Json& measured = row["measured"];
  if (!measured.contains("home") || measured["home"].is_null()) return;
  const auto most = measured["home"]["max_batch"].get<std::int64_t>();
  std::int64_t least = most / 2;
  if (measured.contains("pytorch") && !measured["pytorch"].is_null()) {
    least = std::min(least, measured["pytorch"]["max_batch"].get<std::int64_t>());
  }
  Json points = Json::array();
  double errors = 0;
  int count = 0;
  for (const int quarter : {1, 2, 3}) {
    const std::int64_t batch = least + (most - least) * quarter / 4;
    report.begin_row(fmt::format("{}: HOME's search at {}", p.model, batch));
    const auto profile = context.profile(p.model, batch);
    if (!profile) continue;
    HomeSearchOptions options;
    options.time_limit = kSearchOverPlan * context.arguments.time_limit;
    options.evaluations = kSearchOverPlan * kPolicies;
    options.seed = context.arguments.seed;
    options.stop = interrupted;
    Json figures = home_search_figures(*profile, context.budget, options);
    if (interrupted()) return;
    if (figures.is_null()) continue;
    if (!figures["prediction_error"].is_null()) {
      errors += figures["prediction_error"].get<double>();
      ++count;
    }
    points.push_back({{"batch", batch},
                      {"predicted_ms", figures["predicted_ms"]},
                      {"lowered_ms", figures["lowered_ms"]},
                      {"prediction_error", figures["prediction_error"]}});
    if (quarter != 2) continue;
    row["search_s"] = figures["search_s"];
    row["evaluate_us"] = figures["evaluate_us"];
    row["search"] = std::move(figures);
  }
  row["prediction"] = {{"published_mean_error", kPublishedPredictionError},
                       {"mean_error", count > 0 ? Json(errors / count) : Json(nullptr)},
                       {"points", std::move(points)}};
}

/// All that is said of one model.
Result<Json> home_row(const HomeContext& context, const PublishedHome& p, TableReport& report) {
  const ProgramOfBatch program = [&](std::int64_t batch) -> Result<Program> {
    auto profile = context.profile(p.model, batch);
    if (!profile) return fail(profile.error());
    return std::move(profile->program);
  };
  const auto possible = largest_possible(program, context.budget.device,
                                         context.machine.alignment(), FitOptions{}.most);
  if (!possible) return fail(possible.error());
  Json row = {{"model", p.model},           {"published", published_json(p)},
              {"measured", Json::object()}, {"largest_streaming_batch", possible->batch},
              {"search_s", nullptr},        {"published_search_s", p.search_s},
              {"evaluate_us", nullptr},     {"published_evaluate_ms", p.evaluate_ms}};
  const TrySystem try_at = [&](const HomeSystem& system, std::int64_t batch) -> Result<FitTrial> {
    const auto profile = context.profile(p.model, batch);
    if (!profile) return fail(profile.error());
    return try_system(system, *profile, context.budget, context.options(system.planner));
  };
  for (const HomeSystem& system : context.systems) {
    RowProgress progress(report, fmt::format("{}, {}", p.model, system.name));
    const TryBatch try_batch = [&](std::int64_t batch, bool) { return try_at(system, batch); };
    const auto found =
        find_fit(try_batch, {possible->batch, kBatchResolution, interrupted}, progress);
    if (!found) return fail(found.error());
    if (found->stopped) break;
    Json& measured = row["measured"][std::string(system.name)];
    measured = found_json(*found);
    const PublishedFit* const published = published_fit(p, system.name);
    if (!measured.is_null() && published != nullptr) {
      const auto there = try_batch(static_cast<std::int64_t>(published->max_batch), false);
      if (!there) return fail(there.error());
      if (interrupted()) break;
      measured["at_published_batch_samples_per_s"] =
          there->fits ? Json(there->samples_per_s()) : Json(nullptr);
    }
    report.line(line_of(p, system.name, measured));
  }
  if (!interrupted()) {
    report.begin_row(fmt::format("{}: all systems at the same batches", p.model));
    if (auto added = add_common_batches(context.systems, try_at, row["measured"]); !added)
      return fail(added.error());
  }
  if (!interrupted()) add_search(context, p, row, report);
  if (!interrupted() && breakdown_batch(p.model) > 0) {
    auto all = breakdowns(context, p.model, report);
    if (!all) return fail(all.error());
    if (interrupted()) return row;
    note_breakdowns(p.model, *all, report);
    row["breakdown"] = std::move(*all);
  }
  return row;
}

Result<std::vector<HomeSystem>> wanted_systems(const Arguments& a, TableReport& report) {
  std::vector<std::string> known;
  for (const HomeSystem& s : kHomeSystems) known.emplace_back(s.name);
  for (const std::string& name : a.systems) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return fail(ErrorCode::usage,
                fmt::format("no system '{}'; there are: {}", name, fmt::join(known, ", ")));
  }
  std::vector<HomeSystem> wanted;
  for (const HomeSystem& s : kHomeSystems) {
    if (!a.systems.empty() && std::ranges::find(a.systems, s.name) == a.systems.end()) continue;
    if (s.planner.empty() || make_planner(s.planner)) {
      wanted.push_back(s);
    } else {
      report.note(
          fmt::format("planner '{}' is not in this build, and so has no figures", s.planner));
    }
  }
  return wanted;
}

void add_home_constants(const HomeContext& context, TableReport& report) {
  const Machine& m = context.machine;
  add_machine(m, report);
  report.constant("budget_bytes", context.budget.device,
                  "budget: its usable memory, for every system");
  std::string residuals;
  for (const auto& [model, residual] : context.calibration.residuals) {
    residuals +=
        fmt::format("{}{} {:+.1f} %", residuals.empty() ? "" : ", ", model, 100 * residual);
  }
  report.constant(
      "time_scale", context.calibration.time_scale,
      fmt::format("time_scale {:.4f} x op time: the only fitted constant, one for all models: the "
                  "geometric mean of published over modelled time of PyTorch's "
                  "iteration at its largest published batch",
                  context.calibration.time_scale));
  report.constant("residuals", Json(context.calibration.residuals),
                  "its residuals, scaled over published time: " + residuals);
  const Nanos limit = context.arguments.time_limit;
  report.constant(
      "plan_limit", limit > Nanos{0} ? Json(to_ms(limit)) : Json(nullptr),
      fmt::format(
          "one plan: {}; largest batches to {:.0f} %",
          limit > Nanos{0}
              ? fmt::format("at most {}", format_time(limit))
              : fmt::format("home {} particles and at most {} policies (published 500 and "
                            "500 iterations), auto at most {} evaluations: no clock decides "
                            "a row",
                            kPublishedParticles, kPolicies, kEvaluations),
          100 * kBatchResolution));
  report.columns({{"model", "model"},
                  {"system", "system"},
                  {"max batch", "max_batch"},
                  {"publ.", "published_max_batch"},
                  {"samples/s", "samples_per_s"},
                  {"publ.", "published_samples_per_s"},
                  {"at publ. batch", "at_published"},
                  {"fastest batch", "fastest_batch"},
                  {"samples/s", "fastest"}});
}

}  // namespace

Result<void> run_home(const Arguments& a, TableReport& report) {
  const auto machine = find_machine(kHomeMachine);
  if (!machine) return fail(machine.error());
  const auto models = wanted_of<PublishedHome>(kPublishedHome, a, report);
  if (!models) return fail(models.error());
  const auto systems = wanted_systems(a, report);
  if (!systems) return fail(systems.error());
  HomeContext context{a};
  context.machine = *machine;
  context.calibration = calibrate_home(*machine);
  context.budget.device = machine->device_memory();
  context.systems = *systems;
  add_home_constants(context, report);
  constexpr int kTrials = 30;  // about so many plans for a search
  report.expect(models->size() * systems->size(), kTrials * a.limit(kGuessedSeconds));
  std::vector<Json> rows;
  for (const PublishedHome& p : *models) {
    if (interrupted()) break;
    const auto row = home_row(context, p, report);
    if (!row) return fail(row.error());
    if (interrupted()) break;
    rows.push_back(*row);
    report.record(*row);
  }
  add_home_notes(rows, report);
  return {};
}

}  // namespace tidepool::reproduce
