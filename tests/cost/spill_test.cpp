#include "cost/spill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "cost/machine_json.h"

namespace tidepool {
namespace {

SpillLink disk(bool duplex) {
  return {{450e6, Nanos{80'000}}, {500e6, Nanos{90'000}}, duplex, {8e9, Nanos{1'000}}, 64 * kGiB};
}

TEST(Spill, BytesThatLeaveTheDeviceGoToTheFile) {
  const Machine before = *find_machine("gtx1080ti");
  EXPECT_EQ(before.away(), before.host());
  EXPECT_EQ(before.to_away().bytes_per_second, before.to_host().bytes_per_second);
  const Machine m = with_spill(before, disk(false));
  EXPECT_EQ(inconsistency(m), "");
  EXPECT_EQ(m.host(), 1);
  EXPECT_EQ(m.away(), 2);
  EXPECT_EQ(m.spaces[2].kind, SpaceKind::file);
  EXPECT_EQ(m.spaces[2].bytes, 64 * kGiB);
  EXPECT_EQ(m.device_memory(), before.device_memory());
  EXPECT_EQ(m.to_away().bytes_per_second, 450e6);
  EXPECT_EQ(m.from_away().latency, Nanos{90'000});
  EXPECT_EQ(m.to_host().bytes_per_second, 8e9);
  for (const MemorySpace& space : m.spaces) EXPECT_EQ(space.alignment, 4096);
}

TEST(Spill, TakesTurnsUnlessTheDiskIsDuplex) {
  const Machine m = *find_machine("gtx1080ti");
  EXPECT_FALSE(with_spill(m, disk(false)).duplex());
  EXPECT_EQ(with_spill(m, disk(false)).channels(), 1);
  EXPECT_TRUE(with_spill(m, disk(true)).duplex());
  EXPECT_EQ(with_spill(m, disk(true)).channels(), 2);
}

TEST(Spill, AMachineIsDuplexWhereNoChannelOfItsDeviceCarriesBothWays) {
  Machine m = with_spill(*find_machine("gtx1080ti"), disk(true));
  m.links[2].channel = 2;
  m.links[3].channel = 3;
  EXPECT_EQ(inconsistency(m), "");
  EXPECT_TRUE(m.duplex());
  m.links[3].channel = 2;  // the file's take turns, the host's do not
  EXPECT_FALSE(m.duplex());
}

TEST(Spill, AFileBehindTheHostAloneIsNotWhereBytesGo) {
  Machine m = *find_machine("gtx1080ti");
  m.spaces.push_back({SpaceKind::file, 0, 4096});
  m.links.push_back({1, 2, {1e9, Nanos{0}}, 2});
  m.links.push_back({2, 1, {1e9, Nanos{0}}, 2});
  EXPECT_EQ(inconsistency(m), "");
  EXPECT_EQ(m.away(), m.host());
  EXPECT_EQ(m.behind_host(), 2);
  EXPECT_TRUE(m.duplex());
}

TEST(Spill, AFileTierIsBehindTheHostOnChannelsOfItsOwn) {
  const Machine before = *find_machine("gtx1080ti");
  EXPECT_EQ(before.behind_host(), kNone);
  EXPECT_EQ(with_spill(before, disk(true)).behind_host(), kNone) << "the device's own";
  for (const bool duplex : {false, true}) {
    const FileTierLink link{{5e8, Nanos{1}}, {6e8, Nanos{2}}, duplex, 64 * kGiB};
    const Machine m = with_file_tier(before, link);
    EXPECT_EQ(inconsistency(m), "");
    ASSERT_EQ(m.behind_host(), 2);
    EXPECT_EQ(m.spaces[2].bytes, 64 * kGiB);
    EXPECT_EQ(m.spaces[1].alignment, 512) << "plans that do not use the file stay as they are";
    EXPECT_EQ(m.find_link(1, 2)->speed.bytes_per_second, 5e8);
    EXPECT_EQ(m.find_link(2, 1)->speed.bytes_per_second, 6e8);
    EXPECT_EQ(m.channels(), duplex ? 4 : 3);
    EXPECT_TRUE(is_preset(m));
  }
}

TEST(Spill, IsInMachineFiles) {
  const Machine m = with_spill(*find_machine("gtx1080ti"), disk(true));
  const Json json = to_json(m);
  const auto back =
      read_json(json.dump(), "m.json", [](const JsonCursor& j) { return machine_from_json(j); });
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), json);
  EXPECT_EQ(back->away(), 2);
}

}  // namespace
}  // namespace tidepool
