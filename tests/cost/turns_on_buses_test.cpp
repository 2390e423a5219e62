#include "cost/turns_on_buses.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

Machine on_one_bus(double bus) {
  Machine m;
  m.set_links({2e9, Nanos{100}}, {1e9, Nanos{200}});
  m.buses = {bus};
  for (Link& link : m.links) link.bus = 0;
  return m;
}

TEST(TurnsOnBuses, LinksOfOneBusTakeTurnsNoFasterThanIt) {
  const Machine m = with_turns_on_buses(on_one_bus(1.5e9));
  EXPECT_FALSE(m.shares_buses());
  EXPECT_FALSE(m.duplex());
  EXPECT_EQ(m.channels(), 1);
  EXPECT_EQ(m.to_host().bytes_per_second, 1.5e9);
  EXPECT_EQ(m.to_host().latency, Nanos{100});
  EXPECT_EQ(m.to_device().bytes_per_second, 1e9);
  EXPECT_EQ(inconsistency(m), "");
}

TEST(TurnsOnBuses, ABusForEachDirectionLeavesBothAtTheSameTime) {
  Machine m = on_one_bus(0.5e9);
  m.buses = {0.5e9, 3e9};
  m.links[1].bus = 1;
  m = with_turns_on_buses(m);
  EXPECT_TRUE(m.duplex());
  EXPECT_EQ(m.to_host().bytes_per_second, 0.5e9);
  EXPECT_EQ(m.to_device().bytes_per_second, 1e9);
}

TEST(TurnsOnBuses, MachinesWithoutBusesAndOfSeveralDevicesStayAsTheyAre) {
  Machine m;
  m.set_links({2e9, Nanos{100}}, {1e9, Nanos{200}});
  EXPECT_TRUE(with_turns_on_buses(m).duplex());
  const Machine several = with_devices(m, 2);
  EXPECT_EQ(with_turns_on_buses(several).buses, several.buses);
}

}  // namespace
}  // namespace tidepool
