#include "report/budget_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "report/markup.h"
#include "report/overhead_axis.h"
#include "report/ticks.h"

namespace tidepool {
namespace {

using Point = BudgetCurve::Point;
using Series = BudgetCurve::Series;

/// Dark enough on white, and told apart with colour-blind eyes (after Okabe and Ito); shapes and
/// dashes tell the rest.
constexpr std::array<const char*, 10> kInks{"#0072b2", "#c44e00", "#00795a", "#a8497f", "#7a5c00",
                                            "#2a8fc7", "#5b3fa8", "#7d3c2e", "#4d4d4d", "#6b7a00"};
constexpr std::array<const char*, 4> kDashes{"none", "7 3", "2 3", "9 3 2 3"};
constexpr std::size_t kShapes = 5;

/// Smallest and largest value of an axis.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] bool empty() const { return low > high; }
};

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

/// Of a point with a plan.
std::string cost_of(const Point& p) {
  return percent(*p.overhead) + (p.streams ? " (streams)" : "");
}

class CurvePicture {
 public:
  explicit CurvePicture(const BudgetCurve& curve) : curve_(curve) {
    for (const Series& s : curve.planners) {
      for (const Point& p : s.points) add(p);
      streams_ = streams_ || std::ranges::any_of(s.points, &Point::streams);
      if (std::ranges::any_of(s.points, [](const Point& p) { return !p.overhead; })) {
        without_.push_back(&s - curve.planners.data());
      }
    }
    for (const Point& p : curve.bound) add(p);
    if (x_.empty()) x_.add(0);
    const double margin = x_.high > x_.low ? 0.03 * (x_.high - x_.low) : 0.1 * x_.high + 1;
    x_ = {x_.low - margin, x_.high + margin};
    if (y_.empty()) y_.add(0);
    axis_ = OverheadAxis(y_.low, y_.high);
    small_ = x_.high > x_.low && curve.bound.size() > 25;
  }

  std::string draw() {
    const double height = std::max(strip_bottom() + 20, legend_bottom() + 16);
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1:.0f}\" width=\"{0}\" "
        "height=\"{1:.0f}\">\n<title>{2}</title>\n",
        kWidth, height, escape_markup(curve_.title));
    put("<style>text{{font:13px 'DejaVu Sans',Verdana,sans-serif;fill:#1f2328}}"
        ".h{{font-size:18px;font-weight:bold}}.m{{fill:#4a525a}}.end{{text-anchor:end}}"
        ".mid{{text-anchor:middle}}.g{{stroke:#d5dae0;stroke-width:1;fill:none}}"
        ".a{{stroke:#1f2328;stroke-width:1;fill:none}}</style>\n");
    put("<rect width=\"{}\" height=\"{:.0f}\" fill=\"#ffffff\"/>\n", kWidth, height);
    put_text(16, 30, "h", curve_.title);
    put_text(16, 52, "m", fmt::format("{}", fmt::join(curve_.facts, "  ·  ")));
    draw_axes();
    draw_bound();
    for (std::size_t s = 0; s < curve_.planners.size(); ++s) draw_series(s);
    draw_without();
    draw_legend();
    put("</svg>\n");
    return std::move(out_);
  }

 private:
  static constexpr double kWidth = 1120;
  static constexpr double kLeft = 104;
  static constexpr double kRight = 812;
  static constexpr double kTop = 112;
  static constexpr double kBottom = 512;
  static constexpr double kStrip = kBottom + 74;  // where there is no plan
  static constexpr double kRow = 20;
  static constexpr double kLegend = kRight + 26;

  template <class... Args>
  void put(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
  }
  void put_text(double x, double y, std::string_view style, std::string_view text) {
    put("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", style, x, y,
        escape_markup(text));
  }

  /// Beside the axis of overheads.
  void put_upwards(double x, std::string_view style, std::string_view text) {
    put("<text class=\"{}\" transform=\"translate({} {}) rotate(-90)\">{}</text>\n", style, x,
        (kTop + kBottom) / 2, escape_markup(text));
  }

  void add(const Point& p) {
    x_.add(static_cast<double>(p.budget));
    if (p.overhead) y_.add(*p.overhead);
  }

  [[nodiscard]] double x_of(double bytes) const {
    return kLeft + (kRight - kLeft) * (bytes - x_.low) / (x_.high - x_.low);
  }
  [[nodiscard]] double x_of(Bytes bytes) const { return x_of(static_cast<double>(bytes)); }
  [[nodiscard]] double y_of(double share) const {
    return kBottom - (kBottom - kTop) * axis_.place(share);
  }
  [[nodiscard]] double strip_bottom() const {
    return without_.empty() ? kBottom + 56 : kStrip + kRow * static_cast<double>(without_.size());
  }
  [[nodiscard]] double legend_bottom() const {
    return kTop + kRow * static_cast<double>(curve_.planners.size() + (streams_ ? 9 : 6));
  }

  void draw_axes() {
    for (const Tick& tick : axis_.ticks(9, 20 / (kBottom - kTop))) {
      const double y = y_of(tick.value);
      put("<path class=\"g\" d=\"M{} {:.1f}H{}\"/>\n", kLeft, y, kRight);
      put_text(kLeft - 8, y + 4.5, "end", tick.label);
    }
    for (const Tick& tick : byte_ticks(static_cast<Bytes>(x_.high), ticks_across(7))) {
      if (tick.value < x_.low) continue;
      put("<path class=\"g\" d=\"M{:.1f} {}V{}\"/>\n", x_of(tick.value), kTop, kBottom + 5);
      put_text(x_of(tick.value), kBottom + 21, "mid", tick.label);
    }
    put_text((kLeft + kRight) / 2, kBottom + 45, "mid", "device budget");
    put_upwards(20, "mid", "overhead (% of the time without a budget)");
    if (axis_.logarithmic()) {
      put_upwards(36, "mid m", "log scale: 100 % is 2 times the iteration time without a budget");
    }
    if (curve_.unlimited_peak > 0) draw_shares();
    put("<path class=\"a\" d=\"M{} {}V{}H{}\"/>\n", kLeft, kTop, kBottom, kRight);
  }

  /// Budgets as shares of the peak, along the upper edge.
  void draw_shares() {
    const auto peak = static_cast<double>(curve_.unlimited_peak);
    for (const Tick& tick : percent_ticks(x_.low / peak, x_.high / peak, 8)) {
      const double x = x_of(tick.value * peak);
      put("<path class=\"a\" d=\"M{:.1f} {}v-5\"/>\n", x, kTop);
      put_text(x, kTop - 9, "mid m", tick.label);
    }
    put("<path class=\"a\" d=\"M{} {}H{}\"/>\n", kLeft, kTop, kRight);
    put_text((kLeft + kRight) / 2, kTop - 28, "mid m", "budget (% of the unlimited peak load)");
  }

  /// As many marks from 0 as give about `most` in the part of the axis that is shown.
  [[nodiscard]] int ticks_across(int most) const {
    return static_cast<int>(std::min(1e6, most * x_.high / (x_.high - x_.low)));
  }

  /// In steps: a bound holds for every budget below its own, and nothing is known between two.
  void draw_bound() {
    std::string edge;
    double last = kLeft;
    for (const Point& p : curve_.bound) {
      if (!p.overhead) continue;
      edge += fmt::format("{}{:.1f} {:.1f}H{:.1f}", edge.empty() ? "M" : "L", last,
                          y_of(*p.overhead), x_of(p.budget));
      last = x_of(p.budget);
    }
    if (edge.empty()) return;
    put("<path fill=\"#c9ced6\" fill-opacity=\"0.75\" d=\"{}V{}H{}z\"/>\n", edge, kBottom, kLeft);
    put("<path stroke=\"#1f2328\" stroke-width=\"2\" fill=\"none\" d=\"{}\"/>\n", edge);
  }

  [[nodiscard]] static const char* ink(std::size_t s) { return kInks[s % kInks.size()]; }
  [[nodiscard]] static const char* dash(std::size_t s) {
    return kDashes[(s / 2 + s / kInks.size()) % kDashes.size()];
  }

  /// Those drawn first are larger: of several at one place all are seen.
  void put_marker(std::size_t s, double x, double y, const std::string& title, bool hollow) {
    const double extra = std::min(0.7 * static_cast<double>(curve_.planners.size() - 1 - s), 5.0);
    const double r = (small_ ? 2.6 : 3.8) + extra;
    std::string path;
    switch (s % kShapes) {
      case 0:
        path = fmt::format(
            "M{0:.1f} {1:.1f}a{2:.1f} {2:.1f} 0 1 0 {3:.1f} 0a{2:.1f} {2:.1f} 0 1 0 "
            "-{3:.1f} 0z",
            x - r, y, r, 2 * r);
        break;
      case 1:
        path = fmt::format("M{0:.1f} {1:.1f}h{2:.1f}v{2:.1f}h-{2:.1f}z", x - r, y - r, 2 * r);
        break;
      case 2:
        path = fmt::format("M{0:.1f} {1:.1f}l{2:.1f} {3:.1f}h-{3:.1f}z", x, y - 1.2 * r, 1.15 * r,
                           2.3 * r);
        break;
      case 3:
        path = fmt::format("M{0:.1f} {1:.1f}l{2:.1f} {2:.1f}l-{2:.1f} {2:.1f}l-{2:.1f} -{2:.1f}z",
                           x, y - 1.3 * r, 1.3 * r);
        break;
      default:
        path = fmt::format("M{0:.1f} {1:.1f}l{2:.1f} -{3:.1f}h-{3:.1f}z", x, y + 1.2 * r, 1.15 * r,
                           2.3 * r);
    }
    put("<path fill=\"{}\" fill-opacity=\"0.6\" stroke=\"{}\" stroke-width=\"1.6\" d=\"{}\">"
        "<title>{}</title></path>\n",
        hollow ? "#ffffff" : ink(s), ink(s), path, escape_markup(title));
  }

  void draw_series(std::size_t s) {
    const Series& series = curve_.planners[s];
    std::string line;
    bool pen_down = false;
    for (const Point& p : series.points) {
      if (p.overhead) {
        line +=
            fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", x_of(p.budget), y_of(*p.overhead));
      }
      pen_down = p.overhead.has_value();
    }
    if (line.empty()) return;
    put("<path fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\" "
        "d=\"{}\"/>\n",
        ink(s), dash(s), line);
    for (const Point& p : series.points) {
      if (!p.overhead) continue;
      put_marker(s, x_of(p.budget), y_of(*p.overhead),
                 fmt::format("{}: {} at {}", series.name, cost_of(p), format_bytes(p.budget)),
                 p.streams);
    }
  }

  void put_cross(std::size_t s, double x, double y) {
    put("<path stroke=\"{}\" stroke-width=\"2\" d=\"M{:.1f} {:.1f}l7 7m0 -7l-7 7\"/>\n", ink(s),
        x - 3.5, y - 3.5);
  }

  /// A row for each planner that has no plan somewhere.
  void draw_without() {
    if (without_.empty()) return;
    for (std::size_t row = 0; row < without_.size(); ++row) {
      const auto s = static_cast<std::size_t>(without_[row]);
      const double y = kStrip + kRow * static_cast<double>(row);
      put("<path class=\"g\" d=\"M{} {:.1f}H{}\"/>\n", kLeft, y, kRight);
      for (const Point& p : curve_.planners[s].points) {
        if (!p.overhead) put_cross(s, x_of(p.budget), y);
      }
      put_text(kRight + 12, y + 4.5, "", curve_.planners[s].name + ": no plan");
    }
  }

  void draw_legend() {
    double y = kTop + 8;
    for (std::size_t s = 0; s < curve_.planners.size(); ++s, y += kRow) {
      put("<path fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\" "
          "d=\"M{} {:.1f}h34\"/>\n",
          ink(s), dash(s), kLegend, y);
      put_marker(s, kLegend + 17, y, curve_.planners[s].name, false);
      put_text(kLegend + 44, y + 4.5, "", curve_.planners[s].name);
    }
    const auto known = [](const Point& p) { return p.overhead.has_value(); };
    if (std::ranges::any_of(curve_.bound, known)) {
      y += 8;
      put("<path fill=\"#c9ced6\" fill-opacity=\"0.75\" d=\"M{0} {1:.1f}h34v10h-34z\"/>"
          "<path stroke=\"#1f2328\" stroke-width=\"2\" d=\"M{0} {1:.1f}h34\"/>\n",
          kLegend, y - 5);
      put_text(kLegend + 44, y + 4.5, "", "proven bound:");
      for (const char* text : {"no plan with the same", "algorithms is in the grey"}) {
        put_text(kLegend + 44, (y += kRow) + 4.5, "m", text);
      }
      y += kRow;
    }
    if (streams_) {
      y += 8;
      put_marker(0, kLegend + 17, y, "streams", true);
      put_text(kLegend + 44, y + 4.5, "", "hollow, any shape: streams,");
      put_text(kLegend + 44, (y += kRow) + 4.5, "m", "as no plan of its own fits");
      y += kRow;
    }
    if (!without_.empty()) {
      y += 8;
      put_cross(8, kLegend + 17, y);
      put_text(kLegend + 44, y + 4.5, "", "no plan in this budget");
    }
  }

  const BudgetCurve& curve_;
  Range x_;                              ///< bytes
  Range y_;                              ///< shares
  OverheadAxis axis_{0, 0};              ///< of shares
  bool streams_ = false;                 ///< some point does
  bool small_ = false;                   ///< markers, as there are many
  std::vector<std::ptrdiff_t> without_;  ///< planners with a budget in which they have no plan
  std::string out_;
};

}  // namespace

std::optional<double> bound_at(const BudgetCurve& curve, Bytes budget) {
  for (const Point& p : curve.bound) {
    if (p.budget >= budget && p.overhead) return p.overhead;
  }
  return {};
}

std::string budget_curve_svg(const BudgetCurve& curve) { return CurvePicture(curve).draw(); }

std::string budget_curve_html(const BudgetCurve& curve) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n<style>"
      "body{{background:#fff;color:#1f2328;font:14px system-ui,'DejaVu Sans',sans-serif;"
      "margin:16px}}svg{{max-width:100%;height:auto}}table{{border-collapse:collapse}}"
      "td,th{{padding:3px 12px;text-align:right;border-bottom:1px solid #d5dae0}}"
      "</style></head><body>\n{}<table><tr><th>budget</th><th>proven bound</th>",
      escape_markup(curve.title), budget_curve_svg(curve));
  std::map<Bytes, std::vector<std::string>> rows;
  const std::size_t columns = curve.planners.size();
  for (std::size_t s = 0; s < columns; ++s) {
    page += fmt::format("<th>{}</th>", escape_markup(curve.planners[s].name));
    for (const Point& p : curve.planners[s].points) {
      auto& row = rows.try_emplace(p.budget, columns, "").first->second;
      row[s] = p.overhead ? cost_of(p) : "no plan";
    }
  }
  page += "</tr>\n";
  for (const auto& [budget, cells] : rows) {
    const auto least = bound_at(curve, budget);
    page += fmt::format("<tr><td>{} ({} B)</td><td>{}</td>", format_bytes(budget), budget,
                        least ? percent(*least) : "not known");
    for (const std::string& cell : cells) page += fmt::format("<td>{}</td>", cell);
    page += "</tr>\n";
  }
  return page + "</table></body></html>\n";
}

}  // namespace tidepool
