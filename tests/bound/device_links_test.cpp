#include "bound/device_links.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/random.h"
#include "bound/fluid.h"
#include "check/check.h"
#include "cost/spill.h"
#include "ir/load_profile.h"
#include "lower/lower.h"
#include "lower/plan_file.h"
#include "sim/simulate.h"
#include "support/program_builder.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

TEST(DeviceLinks, OneDeviceAndItsHostHaveTheLinksOfTheMachine) {
  Machine machine;
  machine.set_links({3e9, Nanos{700}}, {7e9, Nanos{900}}, false);
  const DeviceLinks links = device_links(machine);
  EXPECT_EQ(links.out.bytes_per_second, 3e9);
  EXPECT_EQ(links.out.latency, 700);
  EXPECT_EQ(links.in.bytes_per_second, 7e9);
  EXPECT_EQ(links.in.latency, 900);
  EXPECT_FALSE(links.duplex);
}

TEST(DeviceLinks, SeveralLinksAddUp) {
  Machine machine;
  machine.spaces = {
      {SpaceKind::device, 0, 512}, {SpaceKind::device, 0, 512}, {SpaceKind::host, 0, 512}};
  machine.links = {{0, 2, {1e9, Nanos{400}}, 0},
                   {2, 0, {1e9, Nanos{400}}, 0},
                   {0, 1, {3e9, Nanos{800}}, 1},
                   {1, 2, {9e9, Nanos{0}}, 2}};
  const DeviceLinks links = device_links(machine);
  EXPECT_EQ(links.out.bytes_per_second, 4e9);
  EXPECT_EQ(links.out.latency, 100);  // a quarter of 400
  EXPECT_EQ(links.in.bytes_per_second, 1e9);
  EXPECT_EQ(links.in.latency, 400);
  EXPECT_TRUE(links.duplex);
}

TEST(DeviceLinks, ThoseThatTakeTurnsCountAsTheFastestOfThem) {
  const SpillLink disk{{1e9, Nanos{9'000}}, {2e9, Nanos{7'000}}, false, {8e9, Nanos{500}}};
  DeviceLinks links = device_links(with_spill(Machine{}, disk));
  EXPECT_EQ(links.out.bytes_per_second, 8e9);
  EXPECT_EQ(links.in.bytes_per_second, 8e9);
  EXPECT_EQ(links.out.latency, 500);
  EXPECT_FALSE(links.duplex);
  SpillLink duplex = disk;
  duplex.duplex = true;
  links = device_links(with_spill(Machine{}, duplex));
  EXPECT_EQ(links.out.bytes_per_second, 8e9);
  EXPECT_TRUE(links.duplex);
}

/// A plan by hand that swaps to a second device, over a link that is faster than the host's.
PlanFile plan_over_a_peer() {
  std::ifstream file(TIDEPOOL_TEST_DATA "/peer.plan.json");
  std::stringstream text;
  text << file.rdbuf();
  auto plan = read_plan(text.str(), "peer.plan.json");
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : PlanFile{};
}

/// Regression: the bound knew the host's link only, and this plan was far below it.
TEST(FluidBound, SeesEveryLinkOfTheDevice) {
  PlanFile file = plan_over_a_peer();
  constexpr int kMachines = testing::usual_or(500, 100);
  int stalled = 0;
  double tightest = 0;
  for (int seed = 0; seed < kMachines; ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    for (Link& link : file.machine.links) {
      link.speed.bytes_per_second = std::pow(10.0, 7 + 5 * random.uniform());
      link.speed.latency = Nanos{static_cast<Nanos::rep>(random.below(100'000))};
    }
    for (Op& op : file.program.ops) {
      if (op.place != OpPlace::device) continue;
      op.algorithms[0].time = Nanos{static_cast<Nanos::rep>(random.below(5'000'000))};
    }
    const Budget budget{file.device_budget, file.host_budget};
    const auto proof = check(file.program, file.plan, check_limits(file.machine, budget));
    ASSERT_TRUE(proof) << proof.error().message;
    const AccessIndex index(file.program);
    const auto algorithms = least_workspace_algorithms(file.program);
    const FluidBound bound =
        fluid_bound({file.program, index, file.machine, algorithms}, budget.device);
    ASSERT_TRUE(bound.feasible);
    const Nanos stalls = long_run(file.program, file.plan, file.machine).iteration_time -
                         compute_time(file.program, algorithms);
    EXPECT_LE(bound.overhead, stalls);
    if (bound.overhead == Nanos{0}) continue;
    ++stalled;
    tightest = std::max(tightest, static_cast<double>(bound.overhead.count()) /
                                      static_cast<double>(stalls.count()));
  }
  // It would prove little if the bound were far below.
  EXPECT_GT(stalled, kMachines / 4);
  EXPECT_GT(tightest, 0.9);
}

TEST(FluidBound, OpsOnSeveralDevicesAreRefused) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 4096);
  const TensorId y = b.tensor("y", 4096);
  b.device("here", {{x, write}}, Nanos{1000});
  b.device("there", {{y, write}}, Nanos{1000});
  b.last().device = 1;
  const Program program = b.build();
  const AccessIndex index(program);
  const auto algorithms = least_workspace_algorithms(program);
  const FluidBound bound = fluid_bound({program, index, Machine{}, algorithms}, 4096);
  EXPECT_FALSE(bound.feasible);
  EXPECT_EQ(bound.refused, "op 'there' runs on device 1: the bound is for one device");
  EXPECT_EQ(fluid_least_load({program, index, Machine{}, algorithms}, Nanos{0}).bytes, 0);
}

}  // namespace
}  // namespace tidepool
