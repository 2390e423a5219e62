#include "base/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidepool {
namespace {

using ::testing::ElementsAre;

std::vector<std::vector<std::string>> lines_of(std::string_view text) {
  CsvReader csv(text, "some.csv");
  std::vector<std::vector<std::string>> lines;
  while (csv.next()) lines.emplace_back(csv.cells().begin(), csv.cells().end());
  return lines;
}

TEST(Csv, LinesAreCellsBetweenCommas) {
  EXPECT_THAT(lines_of("a,b\n1, 2 \n"),
              ElementsAre(ElementsAre("a", "b"), ElementsAre("1", " 2 ")));
  EXPECT_THAT(lines_of(",a,"), ElementsAre(ElementsAre("", "a", "")));
}

TEST(Csv, TheLastLineNeedsNoEndAndLinesMayEndAsOnWindows) {
  EXPECT_THAT(lines_of("a\r\nb"), ElementsAre(ElementsAre("a"), ElementsAre("b")));
  EXPECT_THAT(lines_of("a\nb\n"), ElementsAre(ElementsAre("a"), ElementsAre("b")));
}

TEST(Csv, ABlankLineIsALineOfOneEmptyCell) {
  EXPECT_THAT(lines_of("\n\nb"), ElementsAre(ElementsAre(""), ElementsAre(""), ElementsAre("b")));
  EXPECT_TRUE(lines_of("").empty());
}

TEST(Csv, ErrorsNameFileLineAndField) {
  const auto read = [](std::string_view wanted) {
    return read_csv("a,b\n1,2\n", "some.csv", [&](CsvReader& csv) {
      while (csv.next()) {
        if (csv.line() == wanted) csv.error("b", "is wrong");
      }
      if (wanted == "another") csv.error("no such line");
      return 3;
    });
  };
  EXPECT_EQ(read("neither"), 3);
  EXPECT_EQ(read("a,b").error().code, ErrorCode::bad_input);
  EXPECT_EQ(read("a,b").error().message, "some.csv:1: field 'b': is wrong");
  EXPECT_EQ(read("1,2").error().message, "some.csv:2: field 'b': is wrong");
  EXPECT_EQ(read("another").error().message, "some.csv:3: no such line") << "behind the last line";
}

TEST(Csv, ANumberIsAllOfItsText) {
  EXPECT_EQ(parse_number<std::int64_t>("-12"), -12);
  EXPECT_EQ(parse_number<std::uint64_t>("ff", 16), 255U);
  EXPECT_EQ(parse_number<double>("2.5"), 2.5);
  for (const char* text : {"", " 1", "1 ", "1x", "99999999999999999999"}) {
    EXPECT_EQ(parse_number<std::int64_t>(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tidepool
