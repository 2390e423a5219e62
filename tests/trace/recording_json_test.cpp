#include "trace/recording_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidepool {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGolden = R"({"schema": 1,
 "type": "tidepool trace",
 "name": "golden \"one\"",
 "resident_bytes": 12,
 "times": true,
 "blocks": [
  {"bytes": 100},
  {"bytes": 8, "name": "bias", "kind": "weight"}
 ],
 "ops": [
  "conv1"
 ],
 "events": [
  ["malloc", 0, 5],
  ["write", 0, 6, 0],
  ["read", 1, 6, 0],
  ["use", 0, 7],
  ["free", 0, 9]
 ]
}
)";

TEST(RecordingJson, RoundTripsByteForByte) {
  const auto recording = read_recording_json(kGolden, "golden.json");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->resident, 12);
  EXPECT_EQ(recording->blocks[1].name, "bias");
  EXPECT_EQ(recording->blocks[1].kind, TensorKind::weight);
  EXPECT_EQ(recording->blocks[0].kind, std::nullopt);
  EXPECT_EQ(recording->events[2].op, 0);
  EXPECT_EQ(recording->events[3].op, kNone);
  EXPECT_EQ(recording->events[4].kind, EventKind::free);
  EXPECT_EQ(to_json_text(*recording), kGolden);
}

TEST(RecordingJson, TimesAndOpsMayBeAbsent) {
  const auto recording = read_recording_json(
      R"({"schema": 1, "type": "tidepool trace", "name": "", "resident_bytes": 0, "times": false,
          "blocks": [{"bytes": 1}], "events": [["read", 0]]})",
      "x");
  ASSERT_TRUE(recording) << recording.error().message;
  const auto back = read_recording_json(to_json_text(*recording), "back");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json_text(*back), to_json_text(*recording));
  EXPECT_FALSE(back->has_times);
}

void expect_bad(const std::string& old_text, const std::string& new_text,
                const std::string& message) {
  std::string text = kGolden;
  const std::size_t at = text.find(old_text);
  ASSERT_NE(at, std::string::npos) << old_text;
  text.replace(at, old_text.size(), new_text);
  const auto recording = read_recording_json(text, "bad.json");
  ASSERT_FALSE(recording) << new_text;
  EXPECT_EQ(recording.error().code, ErrorCode::bad_input);
  EXPECT_THAT(recording.error().message, HasSubstr(message));
}

TEST(RecordingJson, NamesLineAndFieldOfAMistake) {
  expect_bad("tidepool trace", "trace", "bad.json:2: field 'type'");
  expect_bad(": 12", ": -1", "bad.json:4: field 'resident_bytes'");
  expect_bad("100", "0", "bad.json:7: field 'blocks[0].bytes'");
  expect_bad("\"weight\"", "\"heavy\"", "bad.json:8: field 'blocks[1].kind'");
  expect_bad("\"malloc\"", "\"alloc\"", "bad.json:14: field 'events[0][0]'");
  expect_bad("\"read\", 1", "\"read\", 2", "bad.json:16: field 'events[2][1]'");
  expect_bad("6, 0]", "6, 1]", "bad.json:15: field 'events[1][3]'");
  expect_bad("[\"use\", 0, 7]", "[\"use\", 0]",
             "bad.json:17: field 'events[3]': an event has 3 entries");
  expect_bad("0, 9", "0, 1", "bad.json:18: field 'events[4][2]': expected a time not before");
  expect_bad("\"use\", 0", "\"malloc\", 0",
             "bad.json:17: field 'events[3][1]': the block is live already");
  expect_bad("[\"read\", 1, 6, 0],", "",
             "bad.json:8: field 'blocks[1]': no event is of this block");
}

}  // namespace
}  // namespace tidepool
