// The options of budgets, searches and caches as records.
#include "planning/planning_options.h"

#include <gtest/gtest.h>

#include <set>

namespace tidepool {
namespace {

/// What `text` makes of a struct.
template <class Spec>
Spec set_to(const OptionOf<Spec>& option, const char* text) {
  Spec spec{};
  const auto value = parse_option(option.record, text);
  EXPECT_TRUE(value) << value.error().message;
  if (value) option.set(spec, *value);
  return spec;
}

TEST(PlanningOptions, EachSetsItsField) {
  EXPECT_EQ(set_to(budget_option(), "60%").device.percent, 60);
  EXPECT_EQ(set_to(budget_option(), "2MiB").device.bytes, 2 << 20);
  EXPECT_EQ(set_to(host_budget_option(), "1MiB").host, 1 << 20);
  EXPECT_EQ(set_to(planner_option(), "tide").name, "tide");
  EXPECT_EQ(set_to(search_options()[0], "2s").time_limit, std::chrono::seconds(2));
  EXPECT_EQ(set_to(search_options()[1], "7").evaluations, 7);
  EXPECT_TRUE(set_to(no_cache_option(), "true").off);
  EXPECT_TRUE(set_to(reprofile_option(), "true").reprofile);
  EXPECT_TRUE(set_to(replan_option(), "true").replan);
}

TEST(PlanningOptions, WhatIsNoValueIsRefusedByName) {
  const auto refusal = [](const OptionRecord& record, const char* text) {
    const auto value = parse_option(record, text);
    return value ? std::string() : value.error().message;
  };
  EXPECT_EQ(
      refusal(host_budget_option().record, "0"),
      "`host_budget`: '0' is not a size above 0, such as 400MiB, 2GB or 1048576 (units: B kB MB "
      "GB TB KiB MiB GiB TiB)");
  EXPECT_EQ(refusal(search_options()[0].record, "0s"),
            "`time_limit`: '0s' is not a duration above 0, such as 500ms, 10s or 2min");
  EXPECT_EQ(refusal(search_options()[1].record, "0"),
            "`evaluations`: '0' is not a whole number of at least 1");
  EXPECT_TRUE(refusal(budget_option().record, "sixty").starts_with("`budget`: 'sixty' is not"));
}

TEST(PlanningOptions, EachIsListedOnceWithHelp) {
  std::set<std::string_view> names;
  for (const OptionRecord& record : planning_records()) {
    EXPECT_TRUE(names.insert(record.name).second) << record.name;
    EXPECT_FALSE(record.help.empty()) << record.name;
  }
  EXPECT_EQ(names.size(), 8U);
}

}  // namespace
}  // namespace tidepool
