#include "modnn_links.h"

#include <fmt/format.h>

#include <array>

#include "base/json.h"
#include "figures.h"
#include "ir/load_profile.h"

namespace tidepool::reproduce {
namespace {

constexpr double kSlowLink = 6e9;  // bytes per second; the preset has 10
constexpr std::array kLinks{3e9, 6e9, 12e9};
constexpr std::array kShares{0.8, 0.6, 0.4, 0.3};
constexpr std::pair<const char*, const char*> kSystems[] = {
    {"modnn", "modnn"}, {"vdnn", "vdnn-dyn"}, {"vdnn_plus", "vdnn-plus"}};

Machine with_link(Machine machine, double bytes_per_second) {
  machine.to_host().bytes_per_second = bytes_per_second;
  machine.to_device().bytes_per_second = bytes_per_second;
  machine.set_device_memory(0);  // unknown: no budget is too large for the card
  return machine;
}

Result<Json> figure_12(const PublishedModnn& published, const Machine& machine,
                       std::span<const Bytes> budgets, const PlannerOptions& options,
                       TableReport& report) {
  const Machine slow = with_link(machine, kSlowLink);
  auto work = ModnnWork::make(published, slow);
  if (!work) return fail(work.error());
  Json points = Json::array();
  for (const Bytes budget : budgets) {
    Json point = {{"budget_bytes", budget}};
    for (const char* system : {"modnn", "vdnn_plus"}) {
      const std::string planner = std::string_view(system) == "modnn" ? "modnn" : "vdnn-plus";
      report.begin_row(
          fmt::format("{} in {} over 6 GB/s, {}", work->model(), format_bytes(budget), planner));
      const auto found = plan_point(*work, planner, budget, true, options);
      if (!found) return fail(found.error());
      point[system] =
          *found ? Json(to_seconds((*found)->time) / to_seconds(work->ideal_time()) - 1) : Json();
    }
    points.push_back(std::move(point));
  }
  return Json{{"bytes_per_second", kSlowLink}, {"budgets", std::move(points)}};
}

Result<Json> whole_batch(const PublishedModnn& published, const Machine& machine,
                         const PlannerOptions& options, TableReport& report) {
  Json points = Json::array();
  for (const double link : kLinks) {
    const Machine linked = with_link(machine, link);
    auto work = ModnnWork::make(published, linked);
    if (!work) return fail(work.error());
    const Program& whole = work->whole();
    const AccessIndex index(whole);
    const Bytes peak =
        load_profile(whole, index, linked.alignment(), fastest_algorithms(whole)).peak;
    for (const double share : kShares) {
      const auto budget = static_cast<Bytes>(share * static_cast<double>(peak));
      Json point = {{"bytes_per_second", link}, {"share", share}, {"budget_bytes", budget}};
      for (const auto& [system, planner] : kSystems) {
        report.begin_row(fmt::format("{} at once in {:.0f} % over {:.0f} GB/s, {}", work->model(),
                                     100 * share, 1e-9 * link, planner));
        const auto found = plan_point(*work, planner, budget, false, options);
        if (!found) return fail(found.error());
        point[system] =
            *found ? Json(to_seconds((*found)->time) / to_seconds(work->ideal_time()) - 1) : Json();
        if (std::string_view(system) == "modnn") {
          point["modnn_moved_bytes"] = *found ? Json((*found)->moved) : Json();
        }
      }
      points.push_back(std::move(point));
    }
  }
  return points;
}

/// Of the points of all rows at one link and share, the mean slowdown; "-" where nobody has a plan.
std::string mean_text(const std::vector<Json>& rows, double link, const char* system,
                      std::optional<double> share) {
  Mean mean;
  for (const Json& row : rows) {
    for (const Json& point : row["links"]["whole_batch"]) {
      if (point["bytes_per_second"] != link || (share && point["share"] != *share)) continue;
      mean.add(number(point, std::string("/") + system));
    }
  }
  if (mean.count() == 0) return "-";
  return fmt::format("{:.1f} % of {}", 100 * mean.mean(), mean.count());
}

}  // namespace

Result<Json> over_links(const PublishedModnn& published, const Machine& machine,
                        std::span<const Bytes> budgets, const PlannerOptions& options,
                        TableReport& report) {
  auto slow = figure_12(published, machine, budgets, options, report);
  if (!slow) return slow;
  auto whole = whole_batch(published, machine, options, report);
  if (!whole) return whole;
  return Json{{"slow_link", std::move(*slow)}, {"whole_batch", std::move(*whole)}};
}

void note_links(const std::vector<Json>& rows, TableReport& report) {
  Mean over;
  int moving = 0;
  int planned = 0;
  int slower = 0;
  for (const Json& row : rows) {
    for (const Json& point : row["links"]["slow_link"]["budgets"]) {
      const auto ours = number(point, "/modnn");
      const auto theirs = number(point, "/vdnn_plus");
      if (ours && theirs) over.add((1 + *theirs) / (1 + *ours));
    }
    for (const Json& point : row["links"]["whole_batch"]) {
      const auto ours = number(point, "/modnn");
      if (!ours) continue;
      ++planned;
      moving += point["modnn_moved_bytes"] > 0 ? 1 : 0;
      for (const char* rival : {"/vdnn", "/vdnn_plus"}) {
        const auto theirs = number(point, rival);
        if (!theirs || *theirs >= *ours - 1e-9) continue;
        ++slower;
        break;
      }
    }
  }
  report.note(
      fmt::format("figure 12 over a link of 6 GB/s in place of 10: moDNN is {:.2f}x as fast "
                  "as vDNN+ on average over {} points",
                  over.mean(), over.count()));
  report.note(
      fmt::format("where copies matter (not of the paper): the batch at once in 80, 60, 40 and 30 "
                  "% of its live "
                  "peak, links of 3, 6 and 12 GB/s: moDNN has a plan at {} points, moves more than "
                  "inputs at {} "
                  "and is slower than vDNN or vDNN+ at {}",
                  planned, moving, slower));
  for (const double link : kLinks) {
    report.note(fmt::format(
        "  {:.0f} GB/s, mean slowdown of the points with a plan: moDNN {}, vDNN "
        "{}, vDNN+ {}; at 60 %: {}, {}, {}",
        1e-9 * link, mean_text(rows, link, "modnn", std::nullopt),
        mean_text(rows, link, "vdnn", std::nullopt),
        mean_text(rows, link, "vdnn_plus", std::nullopt), mean_text(rows, link, "modnn", 0.6),
        mean_text(rows, link, "vdnn", 0.6), mean_text(rows, link, "vdnn_plus", 0.6)));
  }
}

}  // namespace tidepool::reproduce
