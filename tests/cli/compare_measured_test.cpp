#include "compare_measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"

namespace tidepool::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ComparisonRow row(const std::string& planner, Bytes budget, int predicted, int measured,
                  int least) {
  ComparisonRow r;
  r.planner = planner;
  r.budget = budget;
  r.time = std::chrono::milliseconds(predicted);
  r.measured = std::chrono::milliseconds(measured);
  r.least_measured = std::chrono::milliseconds(least);
  r.measured_iterations = 9;
  return r;
}

TEST(CompareMeasured, NamesThePlanThatIsClearlyFasterThanTheOnePredicted) {
  ComparisonRow unmeasured = row("none", kMiB, 1, 0, 0);
  unmeasured.measured_iterations = 0;
  const std::string lines =
      other_than_predicted({row("auto", kMiB, 20, 32, 27), unmeasured,
                            row("home", kMiB, 22, 20, 18), row("auto", 2 * kMiB, 10, 11, 10)});
  EXPECT_THAT(lines, HasSubstr("in 1.0 MiB home was the fastest, not auto as predicted"));
  EXPECT_THAT(lines, Not(HasSubstr("2.0 MiB")));
}

TEST(CompareMeasured, AMedianWithinTheSpreadOfTheOtherSaysNothing) {
  EXPECT_EQ(other_than_predicted({row("auto", kMiB, 20, 23, 19), row("home", kMiB, 22, 20, 18)}),
            "");
  EXPECT_EQ(other_than_predicted({}), "");
}

}  // namespace
}  // namespace tidepool::cli
