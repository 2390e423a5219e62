#include "trace/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/recording_builder.h"

namespace tidepool {
namespace {

using testing::RecordingBuilder;

TEST(BlockOrder, RefusesEventsAfterAFreeAndSecondMallocs) {
  BlockOrder order;
  EXPECT_EQ(order.next(EventKind::malloc, 0), "");
  EXPECT_EQ(order.next(EventKind::malloc, 0), "the block is live already");
  EXPECT_EQ(order.next(EventKind::free, 0), "");
  EXPECT_EQ(order.next(EventKind::read, 0), "the block was freed before");
  EXPECT_EQ(order.next(EventKind::malloc, 0), "the block was freed before");
  EXPECT_EQ(order.next(EventKind::read, 1), "") << "it was there before the recording";
  EXPECT_EQ(order.next(EventKind::malloc, 1), "the block is live already");
}

TEST(Recording, CountsWhatWasThereBeforeAndThePeak) {
  RecordingBuilder b;
  b.recording().resident = 1000;
  const BlockId before = b.block(200);
  const BlockId first = b.malloc(30);
  b.write(first).read(before).free(before);
  const BlockId second = b.malloc(4);
  b.free(first).free(second);
  EXPECT_EQ(bytes_at_start(b.recording()), 1200);
  EXPECT_EQ(peak_live_bytes(b.recording()), 1230);
}

TEST(Recording, ReaderTellsJsonFromCsv) {
  const auto csv = read_recording("index,op,address,bytes,time_ns\n0,malloc,0x1,5,\n", "a/b.csv");
  ASSERT_TRUE(csv) << csv.error().message;
  EXPECT_EQ(csv->name, "b");
  const auto json = read_recording(" \n{\"schema\": 2}", "b.json");
  ASSERT_FALSE(json);
  EXPECT_THAT(json.error().message, ::testing::HasSubstr("b.json:2: field 'schema'"));
}

}  // namespace
}  // namespace tidepool
