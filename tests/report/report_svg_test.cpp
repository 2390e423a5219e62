#include "report/report_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/plan_files.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t i = text.find(what); i != std::string::npos; i = text.find(what, i + 1)) ++n;
  return n;
}

/// Every element is closed, in the right order; no text holds what must be escaped.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  std::size_t i = 0;
  while (i < xml.size()) {
    if (xml[i] != '<') {
      ASSERT_NE(xml[i], '>') << xml.substr(i, 60);
      ++i;
      continue;
    }
    const std::size_t end = xml.find('>', i);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(i + 1, end - i - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    ASSERT_EQ(count(tag, "\"") % 2, 0U) << tag;
    if (tag.front() == '/') {
      ASSERT_FALSE(open.empty()) << tag;
      ASSERT_EQ("/" + open.back(), tag);
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find_first_of(" \n")));
    }
    i = end + 1;
  }
  EXPECT_TRUE(open.empty());
}

TEST(ReportSvg, IsWellFormedForEveryPlan) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    auto plan = testing::random_plan(seed);
    ASSERT_TRUE(plan.has_value());
    const PlanFile file = testing::file_of(std::move(*plan));
    expect_well_formed(report_svg(file, make_timeline(file)));
  }
}

TEST(ReportSvg, WhatPassesTheEndIsDrawnInTwoParts) {
  const PlanFile file = testing::copy_across_the_end();
  const PlanTimeline t = make_timeline(file);
  const std::string svg = report_svg(file, t);
  const std::size_t title = svg.find("<title>x out\n");
  ASSERT_NE(title, std::string::npos);
  const std::string group = svg.substr(title, svg.find("</g>", title) - title);
  EXPECT_EQ(count(group, "<rect"), 2U) << group;
  EXPECT_THAT(svg, HasSubstr("<title>stall of 30 ns, waits for x out"));
}

TEST(ReportSvg, NamesAreEscaped) {
  const PlanFile file = testing::copy_across_the_end("<script>\"&");
  const std::string svg = report_svg(file, make_timeline(file));
  expect_well_formed(svg);
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&quot;&amp;"));
}

}  // namespace
}  // namespace tidepool
