#include "compare_plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/file.h"
#include "base/output_file.h"
#include "lower/overhead.h"
#include "output_check.h"
#include "planning/budget.h"
#include "report/budget_curve.h"
#include "report/svg_to_png.h"

namespace tidepool::cli {
namespace {

/// Of the SVG's size: sharp on screens with small pixels too.
constexpr double kPngScale = 2;

BudgetCurve curve_of(const Subject& subject, const std::vector<ComparisonRow>& rows) {
  const Profile& profile = subject.profile;
  BudgetCurve curve;
  curve.title = fmt::format("{} on {}: what a memory budget costs", profile.program.name,
                            profile.machine.name);
  curve.unlimited_peak = subject.unlimited_peak();
  curve.facts = {fmt::format("batch {}", profile.program.batch),
                 fmt::format("unlimited peak load {}", format_bytes(curve.unlimited_peak))};
  if (profile.program.rounds() > 1) {
    curve.facts.push_back(
        fmt::format("{} rounds of {}", profile.program.rounds(), profile.program.sub_batch));
  }
  const bool chosen = std::ranges::any_of(
      rows, [](const ComparisonRow& row) { return row.rounds.chosen && row.rounds.rounds > 1; });
  if (chosen) curve.facts.emplace_back("rounds as planners choose them");
  for (const ComparisonRow& row : rows) {
    const Bytes budget = row.budget + row.resident;
    auto series = std::ranges::find(curve.planners, row.planner, &BudgetCurve::Series::name);
    if (series == curve.planners.end()) {
      series = curve.planners.insert(series, {row.planner, {}});
    }
    series->points.push_back({budget, {}});
    if (row.feasible()) series->points.back().overhead = overhead(row.time, row.unlimited);
    series->points.back().streams = row.streaming;
    if (row.least && (curve.bound.empty() || curve.bound.back().budget < budget)) {
      curve.bound.push_back({budget, row.least});
    }
  }
  curve.facts.push_back(counted(curve.planners.front().points.size(), "budget"));
  return curve;
}

}  // namespace

Result<void> check_plot(const std::string& path, std::span<const std::string> read) {
  if (path.empty()) return {};
  if (!path.ends_with(".svg") && !path.ends_with(".html") && !path.ends_with(".png")) {
    return fail(ErrorCode::usage,
                fmt::format("--plot {}: the file's name must end in .svg, .html or .png", path));
  }
  if (path.ends_with(".png")) {
    if (auto png = check_png_library(); !png) {
      return fail(png.error().code, fmt::format("--plot {}: {}; .svg and .html need nothing", path,
                                                png.error().message));
    }
  }
  if (auto other = check_no_input(path, read); !other) return other;
  return check_output(path);
}

Result<void> write_plot(const std::string& path, const Subject& subject,
                        const std::vector<ComparisonRow>& rows) {
  if (path.empty() || rows.empty()) return {};
  const BudgetCurve curve = curve_of(subject, rows);
  if (path.ends_with(".html")) return write_file(path, budget_curve_html(curve));
  const std::string svg = budget_curve_svg(curve);
  if (path.ends_with(".svg")) return write_file(path, svg);
  const auto png = svg_to_png(svg, kPngScale);
  if (!png) return fail(png.error());
  return write_file(path, *png);
}

}  // namespace tidepool::cli
