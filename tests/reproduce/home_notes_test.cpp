#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reproduce/notes.h"

namespace tidepool::reproduce {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Throughputs at batches 100, 200 and 300; none at 0.
Json fit(const std::vector<double>& samples_per_s) {
  Json curve = Json::array();
  Json result = {{"max_batch", 0}, {"samples_per_s", 0.0}, {"fastest_samples_per_s", 0.0}};
  std::int64_t batch = 0;
  for (const double speed : samples_per_s) {
    batch += 100;
    curve.push_back({{"batch", batch}, {"samples_per_s", speed}});
    result["max_batch"] = batch;
    result["samples_per_s"] = speed;
    result["fastest_samples_per_s"] =
        std::max(result["fastest_samples_per_s"].get<double>(), speed);
  }
  result["curve"] = std::move(curve);
  return result;
}

/// The notes below a table of one row, as printed.
std::string notes_of(const Json& measured) {
  const Json row = {{"model", "vgg16"}, {"published", Json::object()}, {"measured", measured}};
  TableReport report("home", "a title", true);
  add_home_notes({row}, report);
  ::testing::internal::CaptureStdout();
  report.finish();
  return ::testing::internal::GetCapturedStdout();
}

Json measured() {
  return {{"pytorch", fit({50})},
          {"vdnn", fit({90, 10, 10})},
          {"superneurons", fit({90, 20, 20})},
          {"capuchin", fit({10, 30, 30})},
          {"home", fit({20, 40, 40})},
          {"auto", fit({40, 40, 40})}};
}

TEST(HomeNotes, NothingIsSaidOfOrderingsThatComeOut) {
  EXPECT_THAT(notes_of(measured()), Not(HasSubstr("does not come out")))
      << "a batch of 100 needs no planner";
}

TEST(HomeNotes, BatchesThatNeedNoPlannerAreNotCompared) {
  EXPECT_THAT(notes_of(measured()), HasSubstr("home over vdnn: up to 4.00 (vgg16 at 200)"));
  Json slow = measured();
  slow["vdnn"] = fit({1, 10, 10});
  EXPECT_THAT(notes_of(slow), HasSubstr("home over vdnn: up to 4.00 (vgg16 at 200)"));
}

TEST(HomeNotes, ASystemThatIsSlowerThanOneItShouldNotBeIsNamed) {
  const std::vector<std::pair<std::string, std::string>> pairs{
      {"superneurons", "capuchin"}, {"superneurons", "home"},
      {"vdnn", "capuchin"},         {"vdnn", "home"},
      {"capuchin", "home"},         {"home", "auto"}};
  for (const auto& [fast, slow] : pairs) {
    Json rows = measured();
    rows[fast] = fit({90, 10, 41});
    EXPECT_THAT(notes_of(rows),
                HasSubstr(fmt::format(
                    "{} no less than {}, here less at 1 of 2 batches, most at 300", slow, fast)));
  }
}

TEST(HomeNotes, AutoIsComparedWithHomeInBatchAndThroughputToo) {
  Json rows = measured();
  rows["auto"] = fit({39, 39});
  EXPECT_THAT(notes_of(rows),
              AllOf(HasSubstr("max_batch: auto no less than home, here 200 and 300"),
                    HasSubstr("fastest_samples_per_s: auto no less than home, "
                              "here 39 and 40")));
}

}  // namespace
}  // namespace tidepool::reproduce
