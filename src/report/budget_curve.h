// BudgetCurve: overhead against budget, one line a planner, above what is proved that no plan can
// have. The picture is for light backgrounds, also as print.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace tidepool {

struct BudgetCurve {
  struct Point {
    Bytes budget = 0;
    std::optional<double> overhead;  ///< a share; none: there is no plan, or no bound is known
    bool streams = false;            ///< the plan is the streaming schedule, not the planner's own
  };
  struct Series {
    std::string name;
    std::vector<Point> points;  ///< by budget
  };

  std::string title;
  std::vector<std::string> facts;  ///< short texts below the title
  Bytes unlimited_peak = 0;        ///< what the shares of budgets refer to
  std::vector<Series> planners;
  /// By budget: the least overhead that plans can have there, and so at every budget below. Of
  /// plans with one choice of algorithms: a planner that chooses others may be below it.
  std::vector<Point> bound;
};

/// The least overhead known for a budget: that of the nearest point at or above it. None above all.
std::optional<double> bound_at(const BudgetCurve& curve, Bytes budget);

std::string budget_curve_svg(const BudgetCurve& curve);
/// A page of its own: the picture, and its figures as a table.
std::string budget_curve_html(const BudgetCurve& curve);

}  // namespace tidepool
