#include "base/duration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ParseDuration, TakesUnits) {
  EXPECT_EQ(parse_duration("500ms"), Nanos{500'000'000});
  EXPECT_EQ(parse_duration("10s"), Nanos{10'000'000'000});
  EXPECT_EQ(parse_duration("2min"), Nanos{120'000'000'000});
  EXPECT_EQ(parse_duration("1.5h"), Nanos{5'400'000'000'000});
  EXPECT_EQ(parse_duration("7us"), Nanos{7'000});
  EXPECT_EQ(parse_duration("7ns"), Nanos{7});
  EXPECT_EQ(parse_duration("10 s"), Nanos{10'000'000'000}) << "as format_duration prints it";
}

TEST(ParseDuration, ABareNumberIsSeconds) {
  EXPECT_EQ(parse_duration("10"), Nanos{10'000'000'000});
  EXPECT_EQ(parse_duration("0.25"), Nanos{250'000'000});
  EXPECT_EQ(parse_duration("0"), Nanos{0});
}

TEST(ParseDuration, RefusesTheRestAndSaysWhatWouldBeRight) {
  for (const char* text :
       {"", "fast", "-1s", "10 sec", "10m", "1e3", "nan", "inf", "s", "10s 5ms"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::usage);
    EXPECT_THAT(parsed.error().message,
                AllOf(HasSubstr("'" + std::string(text) + "'"), HasSubstr("500ms, 10s or 2min")));
  }
  EXPECT_THAT(parse_duration("2000000h").error().message, HasSubstr("too long"));
}

TEST(FormatDuration, IsAsCoarseAsItIsLong) {
  EXPECT_EQ(format_duration(std::chrono::milliseconds(450)), "450.00 ms");
  EXPECT_EQ(format_duration(std::chrono::seconds(10)), "10 s");
  EXPECT_EQ(format_duration(std::chrono::seconds(119)), "119 s");
  EXPECT_EQ(format_duration(std::chrono::seconds(260)), "4 min");
  EXPECT_EQ(format_duration(std::chrono::minutes(80)), "1 h 20 min");
}

}  // namespace
}  // namespace tidepool
