#include "base/json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

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

/// A folder of its own, removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tidepool-json-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_),
                                                  std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

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

TEST(ReadFile, AMissingFileIsBadInputWithTheReason) {
  const auto text = read_file("/nonexistent/x.json");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::bad_input);
  EXPECT_THAT(text.error().message, "/nonexistent/x.json: cannot open: No such file or directory");
}

TEST(ReadFile, AFolderIsBadInputWithTheReason) {
  const Folder folder;
  const auto text = read_file(folder.file("."));
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("Is a directory"));
}

TEST(WriteFile, WhatWasWrittenIsReadBackAndNoTemporaryFileStays) {
  const Folder folder;
  const std::string content = std::string("a\0b\n", 4) + std::string(300'000, 'x');
  ASSERT_TRUE(write_file(folder.file("out"), content));
  EXPECT_EQ(*read_file(folder.file("out")), content);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(WriteFile, AnOldFileIsReplaced) {
  const Folder folder;
  ASSERT_TRUE(write_file(folder.file("out"), "a longer old text"));
  ASSERT_TRUE(write_file(folder.file("out"), "new"));
  EXPECT_EQ(*read_file(folder.file("out")), "new");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(WriteFile, AMissingFolderIsARuntimeErrorWithTheReason) {
  const auto written = write_file("/nonexistent/folder/x", "text");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::runtime);
  EXPECT_THAT(written.error().message,
              "/nonexistent/folder/x: cannot create: No such file or directory");
}

TEST(WriteFile, AFolderAsTargetFailsAndLeavesNoTemporaryFile) {
  const Folder folder;
  ASSERT_TRUE(std::filesystem::create_directory(folder.file("taken")));
  const auto written = write_file(folder.file("taken"), "text");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("rename"));
  EXPECT_EQ(folder.entries(), 1u);
}

/// A limit on the size of files stands in for a full disk: the write stops in the middle.
TEST(WriteFile, AFullDiskKeepsTheOldFileAndLeavesNoTemporaryFile) {
  const Folder folder;
  ASSERT_TRUE(write_file(folder.file("out"), "old"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = write_file(folder.file("out"), std::string(100'000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::runtime);
  EXPECT_THAT(written.error().message, HasSubstr("cannot write: File too large"));
  EXPECT_EQ(*read_file(folder.file("out")), "old");
  EXPECT_EQ(folder.entries(), 1u);
}

/// `-o /dev/null` and `-o /dev/stdout`: the rename must not put a file where the device was.
TEST(WriteFile, ATargetThatIsNoRegularFileIsNotReplacedByOne) {
  const Folder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  const int reader = ::open(folder.file("pipe").c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  (void)write_file(folder.file("pipe"), "text");
  EXPECT_EQ(std::filesystem::status(folder.file("pipe")).type(), std::filesystem::file_type::fifo);
  EXPECT_EQ(folder.entries(), 1u);
  ::close(reader);
}

}  // namespace
}  // namespace tidepool
