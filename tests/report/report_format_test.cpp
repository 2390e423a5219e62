#include "report/report_format.h"

#include <gtest/gtest.h>

#include "report/plan_files.h"

namespace tidepool {
namespace {

TEST(ReportFormat, EachFormatRendersItsOwnKindOfDocument) {
  const PlanFile file = testing::copy_across_the_end();
  const PlanTimeline t = make_timeline(file);
  std::vector<std::string> names;
  for (const ReportFormat& f : report_formats()) {
    names.emplace_back(f.name);
    const std::string document = f.render(file, t);
    EXPECT_EQ(document, f.render(file, t)) << "the same every time";
    if (f.name == "html") {
      EXPECT_TRUE(document.starts_with("<!DOCTYPE html>"));
    }
    if (f.name == "perfetto") {
      EXPECT_TRUE(document.starts_with("{"));
    }
    if (f.name == "svg") {
      EXPECT_TRUE(document.starts_with("<svg "));
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"html", "perfetto", "svg"}));
}

}  // namespace
}  // namespace tidepool
