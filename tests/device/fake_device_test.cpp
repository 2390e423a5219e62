#include "support/fake_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Ops take 10 ns, copies one byte a nanosecond. Streams: compute, copy, copy.
FakeScript script() {
  FakeScript s;
  s.op_time = [](const WorkLabel&) { return Nanos{10}; };
  s.copy_time = [](CopyRoute, Bytes bytes) { return Nanos{bytes}; };
  return s;
}

void open(FakeDevice& device) {
  device.open({256, 256, {StreamKind::compute, StreamKind::copy, StreamKind::copy}});
}

/// Work that appends its argument to a list.
struct Log {
  std::vector<std::int64_t> ran;
  Work entry(std::int64_t id) {
    Work work;
    work.run = [](void* context, std::int64_t argument, NativeStream) {
      static_cast<Log*>(context)->ran.push_back(argument);
    };
    work.context = this;
    work.argument = id;
    return work;
  }
};

TEST(FakeDevice, StreamsRunInOrderOnTheirOwnVirtualClocks) {
  FakeDevice device(script());
  open(device);
  Log log;
  device.launch(0, log.entry(1));
  device.launch(0, log.entry(2));
  device.launch(1, log.entry(3));
  device.synchronize();
  ASSERT_THAT(device.records(), SizeIs(3));
  EXPECT_EQ(device.records()[0].start, Nanos{0});
  EXPECT_EQ(device.records()[1].start, Nanos{10});
  EXPECT_EQ(device.records()[1].end, Nanos{20});
  EXPECT_EQ(device.records()[2].start, Nanos{0});
  EXPECT_EQ(device.records()[2].stream, 1);
  EXPECT_EQ(device.now(), Nanos{20});
}

TEST(FakeDevice, WorkIsExecutedInTheOrderOfVirtualTimeAndNotOfIssue) {
  FakeDevice device(script());
  open(device);
  Log log;
  device.launch(0, log.entry(1));
  device.launch(0, log.entry(2));  // at 10
  device.launch(1, log.entry(3));  // at 0
  EXPECT_THAT(log.ran, IsEmpty()) << "nothing runs before the caller synchronises";
  device.synchronize();
  EXPECT_THAT(log.ran, ::testing::ElementsAre(1, 3, 2));
}

TEST(FakeDevice, AWaitDelaysTheNextWorkUntilTheLatestRecord) {
  FakeDevice device(script());
  open(device);
  Log log;
  const auto event = device.create_event();
  device.launch(0, log.entry(1));
  device.record(event, 0);
  device.launch(0, log.entry(2));
  device.wait(1, event);
  device.launch(1, log.entry(3));
  EXPECT_EQ(device.records()[2].start, Nanos{10}) << "the record stands before the second launch";
  device.record(event, 0);
  device.wait(2, event);
  device.launch(2, log.entry(4));
  EXPECT_EQ(device.records()[3].start, Nanos{20});
  EXPECT_EQ(device.synchronize(event), Nanos{20});
}

TEST(FakeDevice, AnEventNeverRecordedIsNoWait) {
  FakeDevice device(script());
  open(device);
  Log log;
  const auto event = device.create_event();
  device.wait(0, event);
  device.launch(0, log.entry(1));
  EXPECT_EQ(device.records()[0].start, Nanos{0});
  EXPECT_EQ(device.synchronize(event), Nanos{0});
}

TEST(FakeDevice, AWaitRefersToTheRecordBeforeItAndNotToALaterOne) {
  FakeDevice device(script());
  open(device);
  Log log;
  const auto event = device.create_event();
  device.launch(0, log.entry(1));
  device.record(event, 0);
  device.wait(1, event);
  device.launch(0, log.entry(2));
  device.record(event, 0);
  device.launch(1, log.entry(3));
  EXPECT_EQ(device.records()[2].start, Nanos{10});
}

TEST(FakeDevice, AnEventCarriesTheWaitsOfItsStream) {
  FakeDevice device(script());
  open(device);
  Log log;
  const auto first = device.create_event();
  const auto second = device.create_event();
  device.launch(0, log.entry(1));
  device.record(first, 0);
  device.wait(1, first);
  device.record(second, 1);
  device.wait(2, second);
  device.launch(2, log.entry(2));
  EXPECT_EQ(device.records()[1].start, Nanos{10});
}

TEST(FakeDevice, SynchronizeIsABarrierForWhatIsIssuedAfterwards) {
  FakeDevice device(script());
  open(device);
  Log log;
  device.launch(0, log.entry(1));
  device.launch(0, log.entry(2));
  device.synchronize();
  device.launch(1, log.entry(3));
  EXPECT_EQ(device.records()[2].start, Nanos{20});
}

TEST(FakeDevice, CopiesMoveBytesBetweenTheArenas) {
  FakeDevice device(script());
  open(device);
  std::memcpy(device.host_arena(), "hello", 5);
  device.copy(1, {0, 64}, {1, 0}, 5);
  device.synchronize();
  EXPECT_EQ(std::memcmp(device.arena() + 64, "hello", 5), 0);
  EXPECT_EQ(device.records()[0].end, Nanos{5});
}

TEST(FakeDevice, MemoryIsNotZeroAtTheStart) {
  FakeDevice device(script());
  open(device);
  EXPECT_NE(device.arena()[0], std::byte{0}) << "zeros would hide reads of what nobody wrote";
  EXPECT_NE(device.host_arena()[0], std::byte{0});
}

TEST(FakeDevice, OverlappingConflictingCopiesAreARace) {
  FakeDevice device(script());
  open(device);
  device.copy(1, {0, 0}, {1, 0}, 64);
  device.copy(2, {0, 32}, {1, 64}, 64);
  device.synchronize();
  ASSERT_THAT(device.races(), SizeIs(1));
  EXPECT_THAT(device.races()[0], HasSubstr("records 0 and 1"));
}

TEST(FakeDevice, TwoReadersAreNoRace) {
  FakeDevice device(script());
  open(device);
  device.copy(1, {1, 0}, {0, 0}, 64);
  device.copy(2, {1, 64}, {0, 0}, 64);
  device.synchronize();
  EXPECT_THAT(device.races(), IsEmpty());
}

TEST(FakeDevice, NeighbouringRangesAreNoRace) {
  FakeDevice device(script());
  open(device);
  device.copy(1, {0, 0}, {1, 0}, 64);
  device.copy(2, {0, 64}, {1, 64}, 64);
  device.synchronize();
  EXPECT_THAT(device.races(), IsEmpty());
}

TEST(FakeDevice, ConflictsThatAnEventOrdersAreNoRace) {
  FakeDevice device(script());
  open(device);
  const auto event = device.create_event();
  device.copy(1, {0, 0}, {1, 0}, 64);
  device.record(event, 1);
  device.wait(2, event);
  device.copy(2, {1, 64}, {0, 0}, 64);
  device.synchronize();
  EXPECT_THAT(device.races(), IsEmpty());
}

TEST(FakeDevice, ALaunchRacesByTheRangesOfItsLabel) {
  FakeDevice device(script());
  open(device);
  ASSERT_TRUE(device.wants_ranges());
  Log log;
  const std::vector<TouchedRange> ranges{{device.arena(), 8, true}};
  Work work = log.entry(1);
  work.label.ranges = ranges;
  device.launch(0, work);
  device.copy(1, {1, 0}, {0, 0}, 64);
  device.synchronize();
  EXPECT_THAT(device.races(), SizeIs(1));
}

TEST(FakeDevice, AFailingCopyThrowsWhenTheCallerSynchronises) {
  FakeScript s = script();
  s.faults.fail_copy = {1, {}};
  FakeDevice device(s);
  open(device);
  Log log;
  device.copy(1, {0, 0}, {1, 0}, 8);
  device.copy(1, {0, 0}, {1, 0}, 16);
  device.copy(1, {0, 0}, {1, 0}, 24);
  try {
    device.synchronize();
    FAIL() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("copy of 16 B to the device failed"));
  }
}

TEST(FakeDevice, TheScriptSeesLabelsAndDirectionsInTheOrderOfCalls) {
  std::vector<std::int32_t> ops;
  std::vector<CopyRoute> directions;
  FakeScript s;
  s.op_time = [&](const WorkLabel& label) {
    ops.push_back(label.op);
    return Nanos{0};
  };
  s.copy_time = [&](CopyRoute direction, Bytes) {
    directions.push_back(direction);
    return Nanos{0};
  };
  FakeDevice device(s);
  open(device);
  Log log;
  for (const std::int32_t op : {4, 2}) {
    Work work = log.entry(0);
    work.label.op = op;
    device.launch(0, work);
  }
  device.copy(1, {0, 0}, {1, 0}, 8);
  device.copy(1, {1, 0}, {0, 0}, 8);
  EXPECT_THAT(ops, ::testing::ElementsAre(4, 2));
  EXPECT_THAT(directions, ::testing::ElementsAre(CopyRoute::to_device, CopyRoute::to_host));
}

}  // namespace
}  // namespace tidepool
