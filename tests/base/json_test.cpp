#include "base/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

template <class Reader>
Error error_of(std::string_view text, Reader reader) {
  const auto result = read_json(text, "some.json", reader);
  EXPECT_FALSE(result) << text;
  return result ? Error{} : result.error();
}

TEST(ReadJson, SyntaxErrorsNameFileAndLine) {
  const auto nothing = [](const JsonCursor&) { return 0; };
  const Error error = error_of("{\n  \"a\": 1,\n  \"b\": ]\n}", nothing);
  EXPECT_EQ(error.code, ErrorCode::bad_input);
  EXPECT_THAT(error.message, StartsWith("some.json:3: not valid JSON: column"));
}

TEST(ReadJson, BrokenDocumentsOfAllKindsAreErrorsAndNotCrashes) {
  const auto nothing = [](const JsonCursor&) { return 0; };
  for (const std::string text :
       {"", " ", "{", "[", "\"", "{\"a\"", "{\"a\":", "[1,", "nul", "{\"a\": 1} x", "\xff",
        "\"\xff\"", "\"\\u12\"", "[1 2]", "{1: 2}", "-", "1e", "1e999", "\xef\xbb"}) {
    const Error error = error_of(text, nothing);
    EXPECT_EQ(error.code, ErrorCode::bad_input) << text;
    EXPECT_THAT(error.message, StartsWith("some.json:1: ")) << text;
  }
}

TEST(ReadJson, AnUnterminatedStringIsReportedOnItsOwnLine) {
  const Error error = error_of("{\n  \"a\": \"x\n}\n", [](const JsonCursor&) { return 0; });
  EXPECT_THAT(error.message, StartsWith("some.json:2: "));
}

// The first of two values was used, and nobody said so.
TEST(ReadJson, AKeyThatIsThereTwiceIsRefusedWithBothLines) {
  const auto nothing = [](const JsonCursor&) { return 0; };
  EXPECT_EQ(error_of("{\n\"a\": 1,\n\"b\": {\"a\": 2},\n\"a\": \"x\"\n}", nothing).message,
            "some.json:4: key 'a' is there twice in one object; it is also on line 2");
  EXPECT_TRUE(read_json("[{\"a\": 1}, {\"a\": {\"a\": 2}}]", "some.json", nothing));
}

/// What followed a NUL byte was not looked at.
TEST(ReadJson, ANulByteIsRefusedAndEndsNothing) {
  const auto nothing = [](const JsonCursor&) { return 0; };
  const std::string text("{}\n\0 garbage", 12);
  EXPECT_EQ(error_of(text, nothing).message, "some.json:2: not valid JSON: a NUL byte");
}

TEST(ReadJson, NestingDeeperThanAnyDocumentOfOursIsRefusedWithItsLine) {
  const auto nothing = [](const JsonCursor&) { return 0; };
  const std::string deepest(kMostJsonLevels, '[');
  EXPECT_TRUE(read_json(deepest + std::string(kMostJsonLevels, ']'), "some.json", nothing));
  for (const char* bracket : {"[", "{\"a\": "}) {
    std::string text = "\n";
    for (int i = 0; i < 200'000; ++i) text += bracket;
    EXPECT_EQ(error_of(text, nothing).message, "some.json:2: arrays and objects more than 64 deep");
  }
}

// Each new key was looked for among all before it: 100,000 keys took 15 s. No clock is asked here;
// at the old pace this test would take a quarter of an hour.
TEST(ReadJson, AnObjectOfAMillionKeysIsReadInOnePass) {
  std::string text = "{";
  constexpr int kKeys = 1'000'000;
  for (int i = 0; i < kKeys; ++i) text += fmt::format("{}\"k{}\": {}", i == 0 ? "" : ",", i, i);
  text += "}";
  const auto last = read_json(text, "some.json", [](const JsonCursor& j) {
    return j[fmt::format("k{}", kKeys - 1)].integer();
  });
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(*last, kKeys - 1);
}

TEST(ReadJson, DocumentsKeepTheirOrderAndEveryKindOfValue) {
  const std::string text = R"({"z": [1, -2, 3.5, "x", true, null, {}, []], "a": {"c": 1, "b": 2}})";
  const auto same = read_json(text, "some.json", [&](const JsonCursor& j) {
    return j["z"].size() == 8 && j["z"].at(1).integer(-2) == -2 && j["z"].at(2).number() == 3.5 &&
           j["z"].at(3).text() == "x" && j["z"].at(4).boolean() && j["a"]["b"].integer() == 2;
  });
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_TRUE(*same);
  const auto parsed = json_detail::parse(text, "some.json");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->dump(), Json::parse(text).dump());
}

TEST(JsonCursor, AMissingFieldIsNamedWithThePathToItsParent) {
  const std::string text = "{\n\"ops\": [\n{\"name\": \"x\"},\n{\n\"kind\": \"y\"}\n]\n}";
  const Error error =
      error_of(text, [](const JsonCursor& j) { return j["ops"].at(1)["name"].text(); });
  EXPECT_THAT(error.message, StartsWith("some.json:4: field 'ops[1]': missing field 'name'"));
}

TEST(JsonCursor, ANullFieldIsMissing) {
  const Error error = error_of("{\"a\": null}", [](const JsonCursor& j) { return j["a"].text(); });
  EXPECT_THAT(error.message, HasSubstr("missing field 'a'"));
}

TEST(JsonCursor, WrongTypesNameFieldLineAndWhatWasFound) {
  const std::string text = "{\n\"a\": \"twelve\",\n\"b\": [1]\n}";
  EXPECT_THAT(error_of(text, [](const JsonCursor& j) { return j["a"].integer(); }).message,
              "some.json:2: field 'a': expected an integer of at least 0, found \"twelve\"");
  EXPECT_THAT(error_of(text, [](const JsonCursor& j) { return j["b"].text(); }).message,
              "some.json:3: field 'b': expected a string, found array");
  EXPECT_THAT(error_of(text, [](const JsonCursor& j) { return j["b"]["c"].text(); }).message,
              "some.json:3: field 'b': expected an object, found array");
  EXPECT_THAT(error_of(text, [](const JsonCursor& j) { return j["a"].size(); }).message,
              HasSubstr("expected an array"));
  EXPECT_THAT(error_of(text, [](const JsonCursor& j) { return j["a"].boolean(); }).message,
              HasSubstr("expected true or false"));
  EXPECT_THAT(error_of(text, [](const JsonCursor& j) { return j["a"].number(); }).message,
              HasSubstr("expected a number"));
  EXPECT_THAT(error_of("[]", [](const JsonCursor& j) { return j["a"].text(); }).message,
              "some.json:1: field '(whole document)': expected an object, found array");
}

TEST(JsonCursor, IntegersOutOfRangeNameTheRange) {
  const auto read = [](std::int64_t low, std::int64_t high) {
    return [low, high](const JsonCursor& j) { return j["a"].integer(low, high); };
  };
  EXPECT_THAT(error_of("{\"a\": 11}", read(1, 10)).message,
              HasSubstr("an integer from 1 to 10, found 11"));
  EXPECT_THAT(error_of("{\"a\": 0}", read(1, 10)).message,
              HasSubstr("an integer from 1 to 10, found 0"));
  EXPECT_THAT(error_of("{\"a\": -1}", [](const JsonCursor& j) { return j["a"].integer(); }).message,
              HasSubstr("at least 0, found -1"));
  for (const char* text : {"{\"a\": 1.5}", "{\"a\": 1.0}", "{\"a\": 9223372036854775808}",
                           "{\"a\": 18446744073709551615}", "{\"a\": 1e30}", "{\"a\": true}"}) {
    EXPECT_THAT(error_of(text, [](const JsonCursor& j) { return j["a"].integer(); }).message,
                HasSubstr("expected an integer"))
        << text;
  }
  const auto largest = read_json("{\"a\": 9223372036854775807}", "f",
                                 [](const JsonCursor& j) { return j["a"].integer(); });
  ASSERT_TRUE(largest);
  EXPECT_EQ(*largest, std::numeric_limits<std::int64_t>::max());
}

TEST(JsonCursor, NumbersOutOfRangeNameTheRange) {
  EXPECT_THAT(
      error_of("{\"a\": 2.5}", [](const JsonCursor& j) { return j["a"].number(0, 1); }).message,
      HasSubstr("a number from 0 to 1, found 2.5"));
  EXPECT_THAT(
      error_of("{\"a\": -2.5}", [](const JsonCursor& j) { return j["a"].number(); }).message,
      HasSubstr("a number of at least 0, found -2.5"));
}

TEST(JsonCursor, AnUnknownNameListsTheKnownOnes) {
  static constexpr std::string_view kNames[] = {"keep", "swap"};
  EXPECT_THAT(
      error_of("{\"a\": \"drop\"}", [](const JsonCursor& j) { return j["a"].one_of(kNames); })
          .message,
      HasSubstr("expected one of keep, swap, found \"drop\""));
  const auto second = read_json("{\"a\": \"swap\"}", "f",
                                [](const JsonCursor& j) { return j["a"].one_of(kNames); });
  ASSERT_TRUE(second);
  EXPECT_EQ(*second, 1u);
}

TEST(JsonCursor, LongValuesAreShortenedInMessages) {
  const std::string text = fmt::format("{{\"a\": \"{}\"}}", std::string(1000, 'x'));
  const Error error = error_of(text, [](const JsonCursor& j) { return j["a"].integer(); });
  EXPECT_LT(error.message.size(), 150u);
}

TEST(JsonCursor, ShorteningDoesNotCutACharacterInHalf) {
  std::string value;
  for (int i = 0; i < 60; ++i) value += "\xc3\xa9";  // é
  for (const char* lead : {"", "a"}) {
    const Error error = error_of(fmt::format("{{\"a\": \"{}{}\"}}", lead, value),
                                 [](const JsonCursor& j) { return j["a"].integer(); });
    EXPECT_NO_THROW((void)Json(error.message).dump()) << "the message is not valid UTF-8";
  }
}

TEST(JsonCursor, OptionalMembersMayBeAbsentOrNull) {
  const auto result = read_json("{\"a\": null, \"b\": 3}", "f", [](const JsonCursor& j) {
    return !j.find("a") && !j.find("z") && j.find("b")->integer() == 3;
  });
  ASSERT_TRUE(result);
  EXPECT_TRUE(*result);
}

TEST(JsonLine, FindsValuesInNestedArrays) {
  const std::string text =
      "{\n"                  // 1
      "  \"grid\": [\n"      // 2
      "    [1, 2],\n"        // 3
      "    [\n"              // 4
      "      3,\n"           // 5
      "      {\"x\": [7,\n"  // 6
      "        8]}\n"        // 7
      "    ]\n"              // 8
      "  ],\n"               // 9
      "  \"after\": true\n"  // 10
      "}";
  EXPECT_EQ(json_line(text, ""), 1);
  EXPECT_EQ(json_line(text, "/grid"), 2);
  EXPECT_EQ(json_line(text, "/grid/0"), 3);
  EXPECT_EQ(json_line(text, "/grid/0/1"), 3);
  EXPECT_EQ(json_line(text, "/grid/1"), 4);
  EXPECT_EQ(json_line(text, "/grid/1/0"), 5);
  EXPECT_EQ(json_line(text, "/grid/1/1"), 6);
  EXPECT_EQ(json_line(text, "/grid/1/1/x/0"), 6);
  EXPECT_EQ(json_line(text, "/grid/1/1/x/1"), 7);
  EXPECT_EQ(json_line(text, "/after"), 10);
}

TEST(JsonLine, ANumberAtTheEndOfItsLineIsOnThatLine) {
  const std::string text = "{\n\"a\": {\n\"b\": 5\n},\n\"c\": [\n1,\n2\n]\n}";
  EXPECT_EQ(json_line(text, "/a/b"), 3);
  EXPECT_EQ(json_line(text, "/c/0"), 6);
  EXPECT_EQ(json_line(text, "/c/1"), 7);
}

TEST(JsonLine, AMissingValueIsOnTheLineOfItsNearestParent) {
  const std::string text = "{\n\"a\": [\n{\n\"b\": \"x\"\n}\n]\n}";
  EXPECT_EQ(json_line(text, "/a/0/missing"), 3);
  EXPECT_EQ(json_line(text, "/a/9"), 2);
  EXPECT_EQ(json_line(text, "/zzz"), 1);
}

TEST(JsonLine, KeysThatBeginAlikeAreNotMixedUp) {
  const std::string text = "{\n\"ab\": true,\n\"a\": true,\n\"a10\": [\n0, 1]\n}";
  EXPECT_EQ(json_line(text, "/a"), 3);
  EXPECT_EQ(json_line(text, "/ab"), 2);
}

}  // namespace
}  // namespace tidepool
