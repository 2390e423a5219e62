// What holds for the options of all planners: a new option is tested here without a line.
#include "planners/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/some_value.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::some_value;

TEST(PlannerOptions, EveryRecordSaysWhatItIsAndIsOnePlannersOrShared) {
  std::set<std::string_view> names;
  for (const OptionRecord& record : all_planner_options()) {
    SCOPED_TRACE(record.name);
    EXPECT_TRUE(names.insert(record.name).second);
    EXPECT_TRUE(std::ranges::all_of(record.name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    }));
    EXPECT_FALSE(record.help.empty());
    EXPECT_THAT(std::string(record.help), Not(HasSubstr("\n")));
    EXPECT_LE(record.least, record.most);
    EXPECT_FALSE(readers_of(record.name).empty());
  }
  for (const PlannerInfo& info : planner_list()) {
    for (const OptionRecord& record : info.options) {
      // Two planners that call different things the same.
      EXPECT_EQ(find_planner_option(record.name)->help, record.help) << record.name;
    }
  }
  for (const char* name : {"pso_particles", "modnn_one_stream", "episodes", "network"}) {
    EXPECT_TRUE(names.contains(name)) << name << ": also where a build has no such planner";
  }
}

TEST(PlannerOptions, WhoDoesNotReadOneRefusesItAndNamesWhoDoes) {
  const std::vector<std::string> none{"none", "tide"};
  EXPECT_TRUE(check_read_by(none, {}));
  for (const OptionRecord& record : all_planner_options()) {
    SCOPED_TRACE(record.name);
    OptionValues values;
    values.set(record.name, some_value(record));
    const auto refused = check_read_by(none, values);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::usage);
    EXPECT_THAT(refused.error().message, HasSubstr("`" + std::string(record.name) + "`"));
    const bool built = std::ranges::any_of(
        readers_of(record.name), [&](std::string_view r) { return reads(r, record.name); });
    EXPECT_THAT(refused.error().message, HasSubstr(built ? "'none, tide'" : "goes without"));
    for (const std::string_view reader : readers_of(record.name)) {
      EXPECT_THAT(refused.error().message, HasSubstr("'" + std::string(reader) + "'"));
      if (!reads(reader, record.name)) continue;  // not in this build
      EXPECT_TRUE(check_read_by(std::vector{std::string("tide"), std::string(reader)}, values));
    }
  }
}

TEST(PlannerOptions, OneThatNoPlannerHasIsRefused) {
  OptionValues values;
  values.set("made_up", true);
  const auto refused = check_read_by(std::vector{std::string("home")}, values);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("`made_up`"));
}

TEST(PlannerOptions, ValuesOfEachTellIdentitiesApart) {
  std::set<std::string> identities{identity_of({})};
  std::size_t count = 1;
  for (const OptionRecord& record : all_planner_options()) {
    for (const bool other : {false, true}) {
      OptionValues values;
      values.set(record.name, some_value(record, other));
      identities.insert(identity_of(values));
      ++count;
    }
  }
  EXPECT_EQ(identities.size(), count);
}

TEST(PlannerOptions, ATextCannotLookLikeSeveralValues) {
  OptionValues one;
  one.set("network", "x");
  one.set("save_network", "a");
  OptionValues other;
  other.set("save_network", "a\nnetwork=1 x");
  EXPECT_NE(identity_of(one), identity_of(other));
}

TEST(Settings, LinesBecomeValues) {
  const auto values =
      parse_settings("home", "# as published\npso_particles=500\n\npso_random_start=true\n");
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(values->whole("pso_particles", 0), 500);
  EXPECT_TRUE(values->flag("pso_random_start"));
  EXPECT_EQ(std::distance(values->begin(), values->end()), 2);
  EXPECT_TRUE(parse_settings("home", "")->empty());
}

TEST(Settings, EveryOptionsTextIsReadBack) {
  for (const PlannerInfo& info : planner_list()) {
    for (const OptionRecord& record : info.options) {
      OptionValues values;
      values.set(record.name, some_value(record));
      for (const auto& [name, value] : values) {
        const auto again = parse_settings(info.name, name + "=" + to_text(value));
        ASSERT_TRUE(again) << again.error().message;
        EXPECT_EQ(*again, values) << name;
      }
    }
  }
}

TEST(Settings, WhatMakesNoSenseIsNamedWithItsLine) {
  const auto refused = [](std::string_view planner, std::string_view text,
                          const ::testing::Matcher<std::string>& why) {
    const auto values = parse_settings(planner, text);
    ASSERT_FALSE(values) << text;
    EXPECT_EQ(values.error().code, ErrorCode::usage);
    EXPECT_THAT(values.error().message, why);
  };
  refused("home", "pso_particles=500\npso_iterations=none",
          AllOf(HasSubstr("line 2"), HasSubstr("`pso_iterations`"), HasSubstr("from 1 to")));
  refused("home", "pso_partcles=500", AllOf(HasSubstr("line 1"), HasSubstr("'pso_particles'")));
  refused("home", "pso_particles", HasSubstr("NAME=VALUE"));
  refused("home", "modnn_one_stream=true", AllOf(HasSubstr("'modnn'"), HasSubstr("'home'")));
  refused("tide", "x=1", HasSubstr("no options"));
  refused("hom", "", HasSubstr("'home'"));
}

}  // namespace
}  // namespace tidepool
