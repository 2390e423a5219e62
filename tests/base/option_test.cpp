#include "base/option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::array<std::string_view, 2> kColours{"red", "green"};

Result<void> check_even(std::string_view text) {
  if (text.size() % 2 == 0) return {};
  return fail(ErrorCode::usage, "has an odd number of characters");
}

constexpr OptionRecord kWhole{
    .name = "count", .type = OptionType::whole_number, .least = 1, .most = 9, .help = ""};
constexpr OptionRecord kNumber{
    .name = "share", .type = OptionType::number, .least = 0, .most = 1, .help = ""};
constexpr OptionRecord kFlag{.name = "loud", .help = ""};
constexpr OptionRecord kChoice{
    .name = "colour", .type = OptionType::choice, .help = "", .choices = kColours};
constexpr OptionRecord kDuration{
    .name = "limit", .type = OptionType::duration, .least = 1, .help = ""};
constexpr OptionRecord kSize{.name = "room", .type = OptionType::size, .least = 1, .help = ""};
constexpr OptionRecord kText{
    .name = "pairs", .type = OptionType::text, .help = "", .sound = check_even};
constexpr OptionRecord kFile{.name = "log", .type = OptionType::output_file, .help = ""};

TEST(Option, TextBecomesAValueOfItsType) {
  EXPECT_EQ(parse_option(kWhole, "9"), OptionValue(std::int64_t{9}));
  EXPECT_EQ(parse_option(kNumber, "0.25"), OptionValue(0.25));
  EXPECT_EQ(parse_option(kNumber, "1"), OptionValue(1.0));
  EXPECT_EQ(parse_option(kFlag, "true"), OptionValue(true));
  EXPECT_EQ(parse_option(kFlag, "false"), OptionValue(false));
  EXPECT_EQ(parse_option(kChoice, "green"), OptionValue(std::string("green")));
  EXPECT_EQ(parse_option(kDuration, "500ms"), OptionValue(Nanos{500'000'000}));
  EXPECT_EQ(parse_option(kSize, "2KiB"), OptionValue(std::int64_t{2048}));
  EXPECT_EQ(parse_option(kText, "abcd"), OptionValue(std::string("abcd")));
  EXPECT_EQ(parse_option(kFile, "a b"), OptionValue(std::string("a b")));
}

TEST(Option, WhatIsNoValueIsNamedWithWhatWouldBeRight) {
  const auto refused = [](const OptionRecord& record, std::string_view text,
                          const std::string& right) {
    const auto value = parse_option(record, text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, ErrorCode::usage);
    EXPECT_THAT(value.error().message,
                AllOf(HasSubstr("`" + std::string(record.name) + "`"), HasSubstr(right)));
  };
  for (const char* text : {"0", "10", "", "x", "1.5", "9 ", "99999999999999999999"}) {
    refused(kWhole, text, "a whole number from 1 to 9");
  }
  for (const char* text : {"nan", "inf", "-0.1", "1.01", "", "0,5"}) {
    refused(kNumber, text, "a number from 0 to 1");
  }
  refused(kFlag, "yes", "true or false");
  refused(kChoice, "blue", "one of red, green");
  for (const char* text : {"0s", "fast", "-1s"}) refused(kDuration, text, "a duration above 0");
  for (const char* text : {"0", "much", "-1"}) refused(kSize, text, "a size above 0");
  refused(kText, "abc", "odd number of characters");
  refused(kFile, "", "a file's name");
}

TEST(Option, ValuesAreTheSameAfterTheirText) {
  const auto same = [](const OptionRecord& record, const OptionValue& value) {
    EXPECT_EQ(parse_option(record, to_text(value)), value) << to_text(value);
  };
  for (const double number : {0.1, 1.0 / 3, 1e-300, 0.0}) same(kNumber, number);
  same(kWhole, std::int64_t{7});
  for (const bool flag : {false, true}) same(kFlag, flag);
  same(kDuration, Nanos{1'234'567'891});
  same(kSize, std::int64_t{123'456'789});
  same(kText, std::string("=\n"));
}

TEST(OptionValues, WhatIsNotStatedIsTheUsualValue) {
  OptionValues values;
  EXPECT_TRUE(values.empty());
  EXPECT_EQ(values.whole("count", 3), 3);
  EXPECT_EQ(values.number("share", 0.5), 0.5);
  EXPECT_EQ(values.duration("limit", Nanos{7}), Nanos{7});
  EXPECT_FALSE(values.flag("loud"));
  EXPECT_EQ(values.text("log"), "");
  values.set("count", 4);
  values.set("share", 0.25);
  values.set("limit", Nanos{8});
  values.set("loud", true);
  values.set("log", "x");
  EXPECT_EQ(values.whole("count", 3), 4);
  EXPECT_EQ(values.number("share", 0.5), 0.25);
  EXPECT_EQ(values.duration("limit", Nanos{7}), Nanos{8});
  EXPECT_TRUE(values.flag("loud"));
  EXPECT_EQ(values.text("log"), "x");
  OptionValues fewer = values;
  fewer.erase("log");
  EXPECT_FALSE(fewer.has("log"));
  EXPECT_NE(fewer, values);
}

}  // namespace
}  // namespace tidepool
