// The deep Q-network paper's figure 5: overhead against memory reduction of eight workloads, by its
// two modes and the systems that it is compared with.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/counted.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "dqn_work.h"
#include "notes.h"
#include "planners/registry.h"
#include "report/budget_curve.h"

namespace tidepool::reproduce {
namespace {

constexpr double kOtherPlanSeconds = 10;  // usual limit of a plan by auto
constexpr std::array<double, 6> kDqnShares{0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
/// An iteration that is longer by less than this share is not called worse.
constexpr double kNotWorse = 1e-3;

/// The fastest plan so far by column, of this workload's budgets up to the present one: a plan for
/// less memory is one for more.
using Fastest = std::map<std::string, DqnPoint>;

PlannerOptions dqn_options(const Arguments& a, const std::string& planner) {
  PlannerOptions options;
  options.seed = a.seed;
  options.time_limit = planner.starts_with("dqn") && a.time_limit == Nanos{0}
                           ? usual_time_limit(planner)
                           : a.limit(kOtherPlanSeconds);
  options.algorithms = AlgorithmPolicy::fastest;
  if (a.episodes > 0) options.values.set("episodes", a.episodes);
  options.stop = interrupted;
  return options;
}

bool is_faster(const DqnPoint& point, const Fastest& fastest, const std::string& field) {
  const auto before = fastest.find(field);
  return before == fastest.end() || point.overhead < before->second.overhead;
}

/// All planners of the columns in one budget.
Result<void> plan_columns(const DqnWork& work, Bytes budget, double share,
                          const std::vector<DqnSystem>& systems, const Arguments& a,
                          Fastest& fastest, Fastest& by_planner, TableReport& report) {
  for (const DqnSystem& system : systems) {
    for (const std::string& planner : system.planners) {
      report.begin_row(
          fmt::format("{} in {:.0f} %, {}", work.workload.model, 100 * share, planner));
      const auto point = dqn_point(work, planner, budget, dqn_options(a, planner));
      if (!point) return fail(point.error());
      if (interrupted()) return {};
      if (!*point) continue;
      if (is_faster(**point, fastest, system.field)) fastest[system.field] = **point;
      if (is_faster(**point, by_planner, planner)) by_planner[planner] = **point;
    }
  }
  return {};
}

/// Of the better mode of the network, where both have a plan.
void add_over_auto(Json& row) {
  const Json& of = row["overhead"];
  Json network = of["dqn"];
  if (network.is_null() || (!of["dqn_swap"].is_null() && of["dqn_swap"] < network)) {
    network = of["dqn_swap"];
  }
  row["over_auto"] = nullptr;
  if (network.is_null() || of["auto"].is_null()) return;
  const double over = (1 + network.get<double>()) / (1 + of["auto"].get<double>()) - 1;
  row["over_auto"] = over;
  row["verdict"] = over > kNotWorse ? "worse" : over < -kNotWorse ? "better" : "as fast";
}

Json dqn_row(const DqnWork& work, Bytes budget, double share, const Fastest& fastest,
             const Fastest& by_planner) {
  Json row = {{"workload", work.workload.model},
              {"family", work.workload.family},
              {"batch", work.workload.batch},
              {"budget_fraction", share},
              {"memory_reduction", 1 - share},
              {"budget_bytes", budget},
              {"peak_bytes", work.peak},
              {"smallest_bytes", work.smallest},
              {"unlimited_ms", to_ms(work.unlimited)}};
  for (const DqnSystem& system : dqn_systems()) {
    const auto found = fastest.find(system.field);
    const bool has = found != fastest.end();
    row["overhead"][system.field] = has ? Json(found->second.overhead) : Json(nullptr);
    row["utilisation"][system.field] = has ? Json(found->second.utilisation) : Json(nullptr);
    row["footprint_bytes"][system.field] = has ? Json(found->second.footprint) : Json(nullptr);
    row["plan_s"][system.field] = has ? Json(to_seconds(found->second.plan_time)) : Json(nullptr);
    if (system.planners.size() == 1) continue;
    row["fastest_mode"] = has ? Json(found->second.planner) : Json(nullptr);
    for (const std::string& planner : system.planners) {
      const auto mode = by_planner.find(planner);
      row["modes"][planner] =
          mode != by_planner.end() ? Json(mode->second.overhead) : Json(nullptr);
    }
  }
  add_over_auto(row);
  return row;
}

void print_dqn_line(const Json& row, TableReport& report) {
  Json line = row;
  for (const auto& [system, value] : row["overhead"].items()) line[system] = value;
  report.line(line);
}

/// The picture of one workload.
Result<void> write_picture(const std::string& folder, const DqnWork& work,
                           const std::vector<Json>& rows) {
  BudgetCurve curve;
  curve.title =
      fmt::format("{} on {}: what a memory budget costs", work.workload.model, work.machine.name);
  curve.unlimited_peak = work.peak;
  curve.facts = {fmt::format("batch {}", work.workload.batch),
                 fmt::format("unlimited peak load {}", format_bytes(work.peak)),
                 "fastest algorithms"};
  for (const DqnSystem& system : dqn_systems()) {
    BudgetCurve::Series series{system.planners.front(), {}};
    for (const Json& row : rows) {
      const Json& value = row["overhead"][system.field];
      series.points.push_back({row["budget_bytes"].get<Bytes>(), {}});
      if (!value.is_null()) series.points.back().overhead = value.get<double>();
    }
    const bool any = std::ranges::any_of(
        series.points, [](const BudgetCurve::Point& point) { return point.overhead.has_value(); });
    if (any) curve.planners.push_back(std::move(series));
  }
  if (curve.planners.empty()) return {};
  const auto path = std::filesystem::path(folder) / (std::string(work.workload.model) + ".svg");
  return write_file(path.string(), budget_curve_svg(curve));
}

Result<void> write_curves(const std::string& path, const std::vector<Json>& rows) {
  if (path.empty()) return {};
  const Json curves = {{"schema", 1}, {"reproduction", "dqn"}, {"rows", rows}};
  return write_file(path, curves.dump(1) + "\n");
}

/// Those with planners that this build has; a note for each that it has not.
std::vector<DqnSystem> dqn_systems_here(TableReport& report) {
  std::vector<DqnSystem> here;
  for (DqnSystem system : dqn_systems()) {
    std::erase_if(system.planners, [&](const std::string& planner) {
      if (make_planner(planner)) return false;
      report.note(fmt::format("planner '{}' is not in this build, and so has no figures", planner));
      return true;
    });
    if (!system.planners.empty()) here.push_back(std::move(system));
  }
  return here;
}

Result<void> add_dqn_head(const Arguments& a, TableReport& report) {
  const auto machine = find_machine(kDqnMachine);
  if (!machine) return fail(machine.error());
  add_machine(*machine, report);
  Json batches = Json::object();
  for (const DqnWorkload& w : kDqnWorkloads) batches[std::string(w.model)] = w.batch;
  report.constant("batch", batches,
                  "batch 100, of images of CIFAR-10's size and of 100 characters; kmeans 60,000 "
                  "points of 784 numbers; the paper prints none");
  report.constant(
      "plan_limit_ms", to_ms(a.limit(kOtherPlanSeconds)),
      fmt::format("auto: at most {} for one plan", format_time(a.limit(kOtherPlanSeconds))));
  const Nanos learning = dqn_options(a, "dqn").time_limit;
  report.constant(
      "episodes", a.episodes,
      fmt::format("dqn, dqn-swap: {} a plan, at most {}",
                  a.episodes > 0 ? counted(static_cast<std::size_t>(a.episodes), "episode")
                                 : "episodes of their own number",
                  format_time(learning)));
  using Form = Column::Form;
  report.columns({{"workload", "workload"},
                  {"budget", "budget_fraction", Form::percent},
                  {"dqn-swap", "dqn_swap", Form::percent},
                  {"dqn", "dqn", Form::percent},
                  {"auto", "auto", Form::percent},
                  {"memonger", "memonger", Form::percent},
                  {"superneurons", "superneurons", Form::percent},
                  {"tflms", "tflms", Form::percent},
                  {"dqn over auto", "over_auto", Form::percent},
                  {"which is", "verdict"}});
  return {};
}

Result<void> check_dqn_outputs(const Arguments& a) {
  if (auto writable = check_writable(a.output); !writable) return writable;
  if (a.pictures.empty()) return {};
  std::error_code failed;
  std::filesystem::create_directories(a.pictures, failed);
  if (!failed) return {};
  return fail(ErrorCode::bad_input, fmt::format("{}: {}", a.pictures, failed.message()));
}

/// All budgets of one workload; `rows` grows by each that was finished.
Result<void> reproduce_workload(const DqnWork& work, const std::vector<double>& shares,
                                const std::vector<DqnSystem>& systems, const Arguments& a,
                                std::vector<Json>& rows, TableReport& report) {
  Fastest fastest;
  Fastest by_planner;
  std::vector<Json> own;
  for (const double share : shares) {
    const auto budget = static_cast<Bytes>(share * static_cast<double>(work.peak));
    if (budget >= work.smallest) {
      auto done = plan_columns(work, budget, share, systems, a, fastest, by_planner, report);
      if (!done) return done;
    }
    if (interrupted()) return {};
    Json row = dqn_row(work, budget, share, fastest, by_planner);
    print_dqn_line(row, report);
    report.record(row);
    rows.push_back(row);
    own.push_back(std::move(row));
    if (auto written = write_curves(a.output, rows); !written) return written;
  }
  return a.pictures.empty() ? Result<void>{} : write_picture(a.pictures, work, own);
}

}  // namespace

Result<void> run_dqn(const Arguments& a, TableReport& report) {
  if (auto sound = check_dqn_outputs(a); !sound) return sound;
  const auto workloads = wanted_of<DqnWorkload>(kDqnWorkloads, a, report);
  if (!workloads) return fail(workloads.error());
  auto shares = wanted_shares(a, kDqnShares);
  if (!shares) return fail(shares.error());
  std::ranges::sort(*shares);  // a plan for less memory is one for more
  if (auto head = add_dqn_head(a, report); !head) return head;
  const std::vector<DqnSystem> systems = dqn_systems_here(report);
  Nanos each{0};
  for (const DqnSystem& system : systems) {
    for (const std::string& planner : system.planners) {
      const bool searches = planner == "auto" || planner.starts_with("dqn");
      each += searches ? dqn_options(a, planner).time_limit : Nanos{0};
    }
  }
  report.expect(workloads->size() * shares->size(), each);
  std::vector<Json> rows;
  for (const DqnWorkload& workload : *workloads) {
    if (interrupted()) break;
    const auto work = dqn_work(workload);
    if (!work) return fail(work.error());
    auto done = reproduce_workload(*work, *shares, systems, a, rows, report);
    if (!done) {
      if (done.error().code == ErrorCode::interrupted) break;
      return done;
    }
  }
  add_dqn_notes(rows, report);
  return {};
}

}  // namespace tidepool::reproduce
