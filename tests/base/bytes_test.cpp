#include "base/bytes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/quantity.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

Bytes parsed(std::string_view text) {
  const auto bytes = parse_bytes(text);
  EXPECT_TRUE(bytes) << text;
  return bytes.value_or(-1);
}

TEST(ParseBytes, APlainNumberIsBytes) {
  EXPECT_EQ(parsed("0"), 0);
  EXPECT_EQ(parsed("512"), 512);
  EXPECT_EQ(parsed("512B"), 512);
}

TEST(ParseBytes, DecimalUnitsArePowersOfAThousand) {
  EXPECT_EQ(parsed("3kB"), 3'000);
  EXPECT_EQ(parsed("3KB"), 3'000);
  EXPECT_EQ(parsed("3MB"), 3'000'000);
  EXPECT_EQ(parsed("2GB"), 2'000'000'000);
  EXPECT_EQ(parsed("2TB"), 2'000'000'000'000);
}

TEST(ParseBytes, BinaryUnitsArePowersOf1024) {
  EXPECT_EQ(parsed("3KiB"), 3 * kKiB);
  EXPECT_EQ(parsed("400MiB"), 400 * kMiB);
  EXPECT_EQ(parsed("2GiB"), 2 * kGiB);
  EXPECT_EQ(parsed("2TiB"), 2048 * kGiB);
}

TEST(ParseBytes, FractionsAreRoundedDownToWholeBytes) {
  EXPECT_EQ(parsed("1.5GiB"), kGiB + kGiB / 2);
  EXPECT_EQ(parsed("1.9"), 1);
  EXPECT_EQ(parsed("0.0019kB"), 1);
}

TEST(ParseBytes, OneSpaceBeforeTheUnitIsAllowed) { EXPECT_EQ(parsed("4 MiB"), 4 * kMiB); }

TEST(ParseBytes, BadInputIsAUsageErrorThatQuotesItAndListsTheUnits) {
  for (const char* text : {"", " ", "MiB", "-1", "-1MiB", "+1", "1XB", "1mib", "1 2", "1e3", "0x10",
                           "nan", "inf", "infinity", "1.5.2", "1GiB ", "400MiBx", "1,5GB", "%"}) {
    const auto bytes = parse_bytes(text);
    ASSERT_FALSE(bytes) << "'" << text << "' gave " << *bytes;
    EXPECT_EQ(bytes.error().code, ErrorCode::usage);
    EXPECT_THAT(bytes.error().message, HasSubstr(fmt::format("'{}'", text)));
    EXPECT_THAT(bytes.error().message, HasSubstr("MiB"));
  }
}

TEST(ParseBytes, SizesThatDoNotFitAreRefusedAndNotWrappedAround) {
  for (const char* text : {"9223372036854775808", "10000000TiB", "5000000000000000000",
                           "99999999999999999999999999999999999999999TB"}) {
    const auto bytes = parse_bytes(text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().code, ErrorCode::usage);
  }
  EXPECT_THAT(parse_bytes("10000000TiB").error().message, HasSubstr("too large"));
}

TEST(ParseBytes, AnEmbeddedZeroByteEndsNothing) {
  EXPECT_FALSE(parse_bytes(std::string_view("12\0", 3)));
}

TEST(ParseSizeOrPercent, APercentageIsOfTheBaseGivenLater) {
  const auto size = parse_size_or_percent("60%");
  ASSERT_TRUE(size);
  EXPECT_EQ(size->resolve(1000), 600);
  EXPECT_EQ(size->resolve(1), 0);
  EXPECT_EQ(parse_size_or_percent("12.5%")->resolve(1000), 125);
  EXPECT_EQ(parse_size_or_percent("100%")->resolve(123'456'789'012), 123'456'789'012);
  EXPECT_EQ(parse_size_or_percent("1000%")->resolve(10), 100);
}

TEST(ParseSizeOrPercent, ASizeDoesNotDependOnTheBase) {
  const auto size = parse_size_or_percent("4KiB");
  ASSERT_TRUE(size);
  EXPECT_EQ(size->resolve(7), 4096);
  EXPECT_EQ(size->resolve(1 << 30), 4096);
}

TEST(ParseSizeOrPercent, ZeroBytesIsASizeAndNotAPercentage) {
  const auto size = parse_size_or_percent("0");
  ASSERT_TRUE(size);
  EXPECT_EQ(size->resolve(1000), 0);
}

TEST(ParseSizeOrPercent, BadPercentagesAreUsageErrors) {
  for (const char* text : {"%", "0%", "-5%", "1001%", "nan%", "inf%", "5%%", "a%", "5 x%"}) {
    const auto size = parse_size_or_percent(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().code, ErrorCode::usage);
    EXPECT_THAT(size.error().message, HasSubstr(text));
  }
}

TEST(ParseSizeOrPercent, BadSizesMentionPercentagesToo) {
  const auto size = parse_size_or_percent("lots");
  ASSERT_FALSE(size);
  EXPECT_THAT(size.error().message, HasSubstr("'lots'"));
  EXPECT_THAT(size.error().message, HasSubstr("percentage"));
}

TEST(AlignUp, GoesToTheNextMultipleAndStaysOnOne) {
  EXPECT_EQ(align_up(0, 64), 0);
  EXPECT_EQ(align_up(1, 64), 64);
  EXPECT_EQ(align_up(64, 64), 64);
  EXPECT_EQ(align_up(65, 64), 128);
  EXPECT_EQ(align_up(7, 1), 7);
}

TEST(FormatBytes, PicksTheBinaryUnitThatReadsBest) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(kMiB), "1.0 MiB");
  EXPECT_EQ(format_bytes(408'107'418), "389.2 MiB");
  EXPECT_EQ(format_bytes(3 * kGiB / 2), "1.50 GiB");
  EXPECT_EQ(format_bytes(-2048), "-2.0 KiB");
}

TEST(FormatBytesUp, IsNeverLessThanWhatItPrints) {
  EXPECT_EQ(format_bytes_up(1), "1 B");
  EXPECT_EQ(format_bytes_up(kKiB), "1.0 KiB");
  EXPECT_EQ(format_bytes_up(kKiB + 1), "1.1 KiB");
  EXPECT_EQ(format_bytes_up(27 * kMiB + 1), "27.1 MiB");
  EXPECT_EQ(format_bytes_up(kMiB - 1), "1.0 MiB") << "and not 1024.0 KiB";
  for (Bytes bytes = 1; bytes < 4 * kGiB; bytes = bytes + bytes / 7 + 1) {
    EXPECT_GE(*parse_bytes(format_bytes_up(bytes)), bytes) << bytes;
  }
}

}  // namespace
}  // namespace tidepool
