#include "report/budget_curve.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/svg_to_png.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t times(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t i = text.find(what); i != std::string::npos; i = text.find(what, i + 1)) ++n;
  return n;
}

/// Planners whose overhead falls with the budget, above a bound; the last has no plan in the least
/// budget.
BudgetCurve curve_of(std::size_t planners, std::size_t budgets) {
  BudgetCurve curve;
  curve.title = "a <model> & a machine";
  curve.unlimited_peak = 1000 * kMiB;
  for (std::size_t p = 0; p < planners; ++p) curve.planners.push_back({fmt::format("p{}", p), {}});
  for (std::size_t b = 0; b < budgets; ++b) {
    const Bytes budget = (300 + 600 * static_cast<Bytes>(b) / static_cast<Bytes>(budgets)) * kMiB;
    const double left = 1 - static_cast<double>(b) / static_cast<double>(budgets);
    curve.bound.push_back({budget, 0.1 * left * left});
    for (std::size_t p = 0; p < planners; ++p) {
      curve.planners[p].points.push_back({budget, 0.1 * left * left + 0.05 * left * double(p)});
    }
  }
  if (planners > 1) curve.planners.back().points.front().overhead.reset();
  return curve;
}

TEST(BudgetCurve, EveryPlanIsAMarkAndEveryMissingOneACross) {
  for (const std::size_t planners : {1U, 2U, 10U}) {
    for (const std::size_t budgets : {1U, 2U, 50U}) {
      const std::string svg = budget_curve_svg(curve_of(planners, budgets));
      const std::size_t without = planners > 1 ? 1 : 0;
      const std::string shape = "fill-opacity=\"0.6\"";
      EXPECT_EQ(times(svg, shape), planners * budgets - without + planners) << "and the legend";
      EXPECT_EQ(times(svg, "m0 -7l-7 7"), 2 * without);
      EXPECT_EQ(times(svg, ": no plan</text>"), without);
      EXPECT_EQ(times(svg, "proven bound:"), 1U);
      EXPECT_THAT(svg, Not(HasSubstr("nan")));
      EXPECT_THAT(svg, Not(HasSubstr("inf")));
      EXPECT_THAT(svg, HasSubstr("a &lt;model&gt; &amp; a machine"));
    }
  }
}

/// A bound of some budget holds below it, not above: lines between two would claim too much.
TEST(BudgetCurve, TheBoundOfABudgetHoldsBelowIt) {
  BudgetCurve curve;
  curve.bound = {{100, 0.5}, {200, std::nullopt}, {300, 0.1}};
  EXPECT_EQ(bound_at(curve, 50), 0.5);
  EXPECT_EQ(bound_at(curve, 100), 0.5);
  EXPECT_EQ(bound_at(curve, 101), 0.1);
  EXPECT_EQ(bound_at(curve, 200), 0.1);
  EXPECT_EQ(bound_at(curve, 301), std::nullopt);
}

TEST(BudgetCurve, OverheadsFarApartAreOnALogarithmicAxis) {
  BudgetCurve curve = curve_of(2, 3);
  EXPECT_THAT(budget_curve_svg(curve), Not(HasSubstr("log scale")));
  curve.planners[0].points[0].overhead = 40;
  EXPECT_THAT(budget_curve_svg(curve), HasSubstr("log scale"));
}

/// All of the picture was at "-nan".
TEST(BudgetCurve, ABoundBelow0BesideLargeOverheadsIsInThePicture) {
  BudgetCurve curve = curve_of(2, 3);
  curve.planners[0].points[0].overhead = 40;
  curve.bound[2].overhead = -0.009;
  EXPECT_THAT(budget_curve_svg(curve), Not(HasSubstr("nan")));
}

TEST(BudgetCurve, PlansThatStreamAreHollow) {
  BudgetCurve curve = curve_of(2, 3);
  const std::string hollow = "<path fill=\"#ffffff\"";
  EXPECT_EQ(times(budget_curve_svg(curve), hollow), 0U);
  curve.planners[0].points[1].streams = true;
  const std::string svg = budget_curve_svg(curve);
  EXPECT_EQ(times(svg, hollow), 2U) << "and the legend";
  EXPECT_EQ(times(svg, "hollow, any shape: streams"), 1U);
  EXPECT_EQ(times(svg, "% (streams) at 500.0 MiB"), 1U);
  EXPECT_EQ(times(budget_curve_html(curve), "% (streams)</td>"), 1U);
}

TEST(BudgetCurve, WithoutAnyPlanOrBoundThereIsStillAPicture) {
  BudgetCurve curve;
  EXPECT_THAT(budget_curve_svg(curve), HasSubstr("</svg>"));
  curve.planners = {{"none", {{100 * kMiB, std::nullopt}}}};
  const std::string svg = budget_curve_svg(curve);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("proven bound")));
  EXPECT_THAT(svg, HasSubstr("none: no plan"));
}

TEST(BudgetCurve, ThePageHasThePictureAndAllFigures) {
  const std::string page = budget_curve_html(curve_of(2, 3));
  EXPECT_EQ(times(page, "<svg"), 1U);
  EXPECT_EQ(times(page, "<tr>"), 4U);
  EXPECT_EQ(times(page, "<td>no plan</td>"), 1U);
  EXPECT_THAT(page, HasSubstr("<td>300.0 MiB (314572800 B)</td><td>10.00 %</td><td>10.00 %</td>"));
}

TEST(SvgToPng, DrawsThePictureAtItsScale) {
  if (testing::kSanitized) GTEST_SKIP() << "what GLib keeps until the end would be a leak";
  if (const auto there = check_png_library(); !there) {
    EXPECT_THAT(there.error().message, HasSubstr("librsvg2-2"));
    GTEST_SKIP() << there.error().message;
  }
  const std::string svg =
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 4" width="8" height="4"/>)";
  const auto png = svg_to_png(svg, 3);
  ASSERT_TRUE(png) << png.error().message;
  EXPECT_EQ(png->substr(0, 4), "\x89PNG");
  EXPECT_EQ(static_cast<int>((*png)[19]), 24) << "width, in the header";
  EXPECT_EQ(static_cast<int>((*png)[23]), 12);
  EXPECT_THAT(svg_to_png("no picture").error().message, HasSubstr("cannot draw"));
}

}  // namespace
}  // namespace tidepool
