#include "runtime/arena_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/fake_device.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;

/// Writes down what is taken and given back.
class NotingDevice : public FakeDevice {
 public:
  NotingDevice() : FakeDevice(FakeScript{}, 64) {}
  void populate(Location place, Bytes bytes) override { note(taken, place, bytes); }
  void discard(Location place, Bytes bytes) override { note(given_back, place, bytes); }

  struct Range {
    SpaceId space;
    Bytes offset;
    Bytes bytes;
  };
  std::vector<Range> taken;
  std::vector<Range> given_back;

 private:
  static void note(std::vector<Range>& to, Location place, Bytes bytes) {
    to.push_back({place.space, place.offset, bytes});
  }
};

/// Two devices, a host and a file; values at rest on the second device and on the host.
Plan plan_of_four_spaces() {
  Plan plan;
  plan.arenas = {{SpaceKind::device, 1000, 64},
                 {SpaceKind::device, 2000, 64},
                 {SpaceKind::host, 3000, 64},
                 {SpaceKind::file, 4000, 64}};
  plan.placements = {{0, 1, 640, 100}, {1, 2, 0, 64},     {2, 1, 64, 64},
                     {3, 1, 128, 512}, {4, 2, 2900, 100}, {5, 3, 0, 64}};
  plan.boundary = {0, 1, 2, 4, 5};
  return plan;
}

TEST(ArenaPages, WhatLiesInASpaceBetweenIterationsStays) {
  NotingDevice device;
  discard_between_iterations(plan_of_four_spaces(), SpaceKind::device, device);
  EXPECT_THAT(device.given_back, ElementsAre(FieldsAre(0, 0, 1000), FieldsAre(1, 0, 64),
                                             FieldsAre(1, 128, 512), FieldsAre(1, 740, 1260)));
  device.given_back.clear();
  discard_between_iterations(plan_of_four_spaces(), SpaceKind::host, device);
  EXPECT_THAT(device.given_back, ElementsAre(FieldsAre(2, 64, 2836)));
}

TEST(ArenaPages, OnlyArenasOfDevicesAreTaken) {
  NotingDevice device;
  populate_devices(plan_of_four_spaces(), device);
  EXPECT_THAT(device.taken, ElementsAre(FieldsAre(0, 0, 1000), FieldsAre(1, 0, 2000)));
}

}  // namespace
}  // namespace tidepool
