#include "report/report_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "report/page.h"
#include "report/plan_files.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The data the page draws, as the browser reads it.
Json data_of(const std::string& page) {
  const std::string begin = R"(<script id="data" type="application/json">)";
  const std::size_t from = page.find(begin) + begin.size();
  const std::size_t to = page.find("</script>", from);
  return Json::parse(page.substr(from, to - from), nullptr, false);
}

TEST(ReportHtml, ThePageHasEachMarkOnce) {
  for (const char* mark : {"{{title}}", "{{colours}}", "{{data}}"}) {
    const std::size_t first = kReportPage.find(mark);
    ASSERT_NE(first, std::string_view::npos) << mark;
    EXPECT_EQ(kReportPage.find(mark, first + 1), std::string_view::npos) << mark;
  }
}

TEST(ReportHtml, HoldsAllThatIsDrawn) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    auto plan = testing::random_plan(seed);
    ASSERT_TRUE(plan.has_value());
    const PlanFile file = testing::file_of(std::move(*plan));
    const PlanTimeline t = make_timeline(file);
    const Json data = data_of(report_html(file, t));
    ASSERT_TRUE(data.is_object());
    EXPECT_EQ(data["period"], t.period.count());
    EXPECT_EQ(data["budget"], file.device_budget);
    EXPECT_EQ(data["runs"].size(), t.runs.size());
    EXPECT_EQ(data["run_texts"].size(), t.runs.size());
    EXPECT_EQ(data["lives"].size(), t.lives.size());
    EXPECT_EQ(data["life_texts"].size(), t.lives.size());
    EXPECT_EQ(data["load"].size(), t.load.size());
    EXPECT_EQ(data["unlimited"].size(), t.unlimited.size());
    EXPECT_EQ(data["lanes"].size(), t.lanes.size());
  }
}

TEST(ReportHtml, NeedsNoNetwork) {
  const PlanFile file = testing::copy_across_the_end();
  const std::string page = report_html(file, make_timeline(file));
  for (const char* address : {"http:", "https:", "src=", "<link", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(address)));
  }
}

TEST(ReportHtml, NamesAreEscaped) {
  const std::string name = "</script><script>alert(\"&\")</script>{{data}}{{title}}";
  PlanFile file = testing::copy_across_the_end(name);
  file.program.name = name;
  const std::string page = report_html(file, make_timeline(file));
  EXPECT_THAT(page, Not(HasSubstr("alert(\"")));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("<title>&lt;/script&gt;&lt;script&gt;alert(&quot;&amp;&quot;)"));
  const Json data = data_of(page);
  ASSERT_TRUE(data.is_object());
  EXPECT_EQ(data["life_texts"][0][0], name);
}

}  // namespace
}  // namespace tidepool
