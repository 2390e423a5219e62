#include "report/report_perfetto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/json.h"
#include "report/plan_files.h"

namespace tidepool {
namespace {

TEST(ReportPerfetto, HasAnEventForEachInstructionOnItsStreamsTrack) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    auto plan = testing::random_plan(seed);
    ASSERT_TRUE(plan.has_value());
    const PlanFile file = testing::file_of(std::move(*plan));
    const PlanTimeline t = make_timeline(file);
    const Json trace = Json::parse(report_perfetto(file, t), nullptr, false);
    ASSERT_TRUE(trace.is_object());
    std::map<int, std::string> track_names;
    std::map<std::size_t, double> duration;
    std::map<std::size_t, std::set<int>> tracks;
    const double period_us = static_cast<double>(t.period.count()) * 1e-3;
    for (const Json& e : trace["traceEvents"]) {
      if (e["ph"] == "M" && e["name"] == "thread_name") {
        track_names[e["tid"]] = e["args"]["name"];
      }
      if (e["ph"] != "X") continue;
      EXPECT_GE(e["ts"].get<double>(), 0);
      EXPECT_LE(e["ts"].get<double>() + e["dur"].get<double>(), period_us + 1e-6);
      if (!e["args"].contains("instruction")) continue;
      const std::size_t i = e["args"]["instruction"];
      duration[i] += e["dur"].get<double>();
      tracks[i].insert(e["tid"].get<int>());
    }
    ASSERT_EQ(duration.size(), t.runs.size());
    for (std::size_t i = 0; i < t.runs.size(); ++i) {
      EXPECT_NEAR(duration[i],
                  static_cast<double>((t.runs[i].time.end - t.runs[i].time.start).count()) * 1e-3,
                  1e-6);
      ASSERT_EQ(tracks[i].size(), 1U);
      const auto lane = static_cast<std::size_t>(t.runs[i].stream);
      EXPECT_EQ(track_names[*tracks[i].begin()], t.lanes[lane].name);
    }
  }
}

TEST(ReportPerfetto, SlicesOfATrackDoNotOverlapInWholeNanoseconds) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    auto plan = testing::random_plan(seed);
    ASSERT_TRUE(plan.has_value());
    const PlanFile file = testing::file_of(std::move(*plan));
    const Json trace = Json::parse(report_perfetto(file, make_timeline(file)));
    const auto nanos = [](const Json& us) {
      return static_cast<std::int64_t>(us.get<double>() * 1000);  // as readers do
    };
    std::map<int, std::vector<std::pair<std::int64_t, std::int64_t>>> slices;
    for (const Json& e : trace["traceEvents"]) {
      if (e["ph"] == "X") {
        slices[e["tid"]].emplace_back(nanos(e["ts"]), nanos(e["ts"]) + nanos(e["dur"]));
      }
    }
    for (auto& [track, list] : slices) {
      std::sort(list.begin(), list.end());
      for (std::size_t i = 1; i < list.size(); ++i) EXPECT_LE(list[i - 1].second, list[i].first);
    }
  }
}

TEST(ReportPerfetto, CountsTheLoadAndShowsStalls) {
  const PlanFile file = testing::copy_across_the_end();
  const PlanTimeline t = make_timeline(file);
  const Json trace = Json::parse(report_perfetto(file, t));
  std::vector<std::pair<double, Bytes>> load;
  double stalled = 0;
  for (const Json& e : trace["traceEvents"]) {
    if (e["ph"] == "C" && e["name"] == "device load (bytes)") {
      load.emplace_back(e["ts"], e["args"]["bytes"]);
    }
    if (e["ph"] == "X" && e["name"] == "stall") stalled += e["dur"].get<double>();
  }
  const std::vector<std::pair<double, Bytes>> expected{{0, 50}, {0.03, 50}, {0.04, 58}};
  ASSERT_EQ(load.size(), expected.size());
  for (std::size_t i = 0; i < load.size(); ++i) {
    EXPECT_NEAR(load[i].first, expected[i].first, 1e-9);
    EXPECT_EQ(load[i].second, expected[i].second);
  }
  EXPECT_NEAR(stalled, 0.03, 1e-9);
  EXPECT_EQ(trace["otherData"]["budget_bytes"], 80);
}

TEST(ReportPerfetto, NamesMayHoldAnyByte) {
  const PlanFile file = testing::copy_across_the_end("<script>\"&\\\n\xff");
  EXPECT_TRUE(Json::accept(report_perfetto(file, make_timeline(file))));
}

}  // namespace
}  // namespace tidepool
