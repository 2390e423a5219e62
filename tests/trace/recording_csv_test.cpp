#include "trace/recording_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidepool {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHeader = "index,op,address,bytes,time_ns\n";

Recording read(const std::string& lines) {
  auto recording = read_recording_csv(kHeader + lines, "folder/small.csv");
  EXPECT_TRUE(recording) << recording.error().message;
  return recording ? std::move(*recording) : Recording{};
}

void expect_bad(const std::string& lines, const std::string& message) {
  const auto recording = read_recording_csv(kHeader + lines, "small.csv");
  ASSERT_FALSE(recording) << lines;
  EXPECT_EQ(recording.error().code, ErrorCode::bad_input);
  EXPECT_THAT(recording.error().message, HasSubstr(message)) << lines;
}

TEST(RecordingCsv, AnAddressIsANewBlockAfterItsFree) {
  const Recording r = read(
      "0,malloc,0xa0,100,10\n1,mutable,0xa0,100,11\n2,free,0xa0,100,12\n"
      "3,read,0xb0,7,13\n4,malloc,0xa0,50,20\r\n5,layer,0xa0,50,20\n");
  EXPECT_EQ(r.name, "small");
  EXPECT_TRUE(r.has_times);
  ASSERT_EQ(r.blocks.size(), 3U);
  EXPECT_EQ(r.blocks[0].bytes, 100);
  EXPECT_EQ(r.blocks[1].bytes, 7);
  EXPECT_EQ(r.blocks[2].bytes, 50);
  ASSERT_EQ(r.events.size(), 6U);
  EXPECT_EQ(r.events[1].kind, EventKind::write);
  EXPECT_EQ(r.events[5].kind, EventKind::use);
  EXPECT_EQ(r.events[5].block, 2);
  EXPECT_EQ(r.events[5].time, Nanos{20});
}

TEST(RecordingCsv, TimesMayBeAbsentOnEveryLine) {
  EXPECT_FALSE(read("0,malloc,1,5,\n1,read,1,5,\n").has_times);
  expect_bad("0,malloc,1,5,\n1,read,1,5,9\n", "small.csv:3: field 'time_ns': expected no time");
  expect_bad("0,malloc,1,5,9\n1,read,1,5,\n", "small.csv:3: field 'time_ns': expected a time");
}

TEST(RecordingCsv, WhatItWritesReadsBackTheSame) {
  const std::string text = std::string(kHeader) +
                           "0,malloc,0x1,100,10\n1,mutable,0x1,100,11\n2,read,0x2,9,12\n"
                           "3,free,0x1,100,13\n4,malloc,0x3,100,14\n5,layer,0x3,100,15\n";
  const auto recording = read_recording_csv(text, "x.csv");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(to_csv(*recording), text);
}

TEST(RecordingCsv, NamesLineAndFieldOfAMistake) {
  expect_bad("", "small.csv:2: no events");
  expect_bad("0,malloc,0x1,5\n", "small.csv:2: field 'bytes': a line has 5 fields");
  expect_bad("0,malloc,0x1,5,1,1\n", "small.csv:2: field 'time_ns': a line has 5 fields");
  expect_bad("x,malloc,0x1,5,1\n", "small.csv:2: field 'index': expected an integer");
  expect_bad("0,alloc,0x1,5,1\n", "small.csv:2: field 'op': expected one of malloc, free");
  expect_bad("0,malloc,0xg,5,1\n", "small.csv:2: field 'address': expected an address");
  expect_bad("0,malloc,0x1,0,1\n", "small.csv:2: field 'bytes': expected a size");
  expect_bad("0,malloc,0x1,99999999999999999999,1\n", "field 'bytes'");
  expect_bad("0,malloc,0x1,5,-1\n", "small.csv:2: field 'time_ns': expected a time");
  expect_bad("0,malloc,0x1,5,7\n1,read,0x1,5,6\n",
             "small.csv:3: field 'time_ns': expected a time not before the last one, 7, found '6'");
  expect_bad("0,malloc,0x1,5,7\n1,malloc,0x1,5,8\n",
             "small.csv:3: field 'address': the block is live already");
  expect_bad("0,free,0x1,5,7\n1,read,0x1,5,8\n",
             "small.csv:3: field 'address': the block was freed before");
  expect_bad("0,malloc,0x1,5,7\n1,read,0x1,6,8\n",
             "small.csv:3: field 'bytes': the block has 5 bytes, found 6");
  expect_bad("0,malloc,0x1,5,7\n\n", "small.csv:3: field 'index'");
}

TEST(RecordingCsv, WantsItsHeader) {
  const auto recording = read_recording_csv("a,b\x01,c\n", "small.csv");
  ASSERT_FALSE(recording);
  EXPECT_THAT(recording.error().message,
              HasSubstr("small.csv:1: header: expected 'index,op,address,bytes,time_ns', found "
                        "'a,b?,c'"));
  EXPECT_FALSE(read_recording_csv("", "small.csv"));
}

}  // namespace
}  // namespace tidepool
