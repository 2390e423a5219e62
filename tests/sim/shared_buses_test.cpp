// Copies that share a bus: times worked out on paper, and nothing else than without buses where
// they are wide.
#include "sim/shared_buses.h"

#include <gtest/gtest.h>

#include "support/program_builder.h"
#include "support/random_plan.h"
#include "support/spaces.h"

namespace tidepool {
namespace {

/// A copy to each of several devices, of so many bytes, after an op of so long; a byte a nanosecond
/// on the links and on the bus.
class BusTest : public ::testing::Test {
 protected:
  struct Copy {
    Bytes bytes = 0;
    Nanos::rep begin = 0;
  };

  static Simulation run(const std::vector<Copy>& copies, Nanos latency = {}, double bus = 1e9) {
    using enum AccessMode;
    testing::ProgramBuilder b;
    Program program;
    Plan plan;
    Machine machine = testing::byte_a_nanosecond();
    machine.to_device().latency = latency;
    machine = with_devices(machine, static_cast<std::int32_t>(copies.size()));
    machine.buses[1] = bus;
    plan.arenas.clear();
    for (const MemorySpace& s : machine.spaces) plan.arenas.push_back({s.kind, 1 << 20, 1});
    for (std::int32_t d = 0; d < machine.devices(); ++d) {
      const Copy& copy = copies[static_cast<std::size_t>(d)];
      const TensorId t = b.tensor("t" + std::to_string(d), copy.bytes);
      const auto first = static_cast<std::int32_t>(plan.steady.instructions.size());
      plan.streams.push_back({d, StreamKind::compute});
      plan.streams.push_back({0, StreamKind::copy});
      plan.placements.push_back({t, machine.host(), 0, copy.bytes});
      plan.placements.push_back({t, d, 0, copy.bytes});
      b.device("wait " + std::to_string(d), {}, Nanos{copy.begin});
      Instruction op;
      op.op = d;
      op.stream = 2 * d;
      plan.steady.instructions.push_back(op);
      Instruction x;
      x.kind = InstructionKind::copy;
      x.stream = 2 * d + 1;
      x.waits = {{2 * d, first, 0}};
      x.from = 2 * d;
      x.to = 2 * d + 1;
      x.bytes = copy.bytes;
      plan.steady.instructions.push_back(x);
    }
    program = b.build();
    return simulate(program, plan, machine, 1);
  }
  static Span copy(const Simulation& s, std::size_t d) { return s.iterations[0][2 * d + 1]; }
  static Span span(Nanos::rep start, Nanos::rep end) { return {Nanos{start}, Nanos{end}}; }
};

TEST_F(BusTest, TwoCopiesAtOnceTakeTwiceAsLong) {
  const Simulation s = run({{1000, 0}, {1000, 0}});
  EXPECT_EQ(copy(s, 0), span(0, 2000));
  EXPECT_EQ(copy(s, 1), span(0, 2000));
}

TEST_F(BusTest, OneThatComesLaterSlowsTheOtherFromThenOn) {
  // 400 B alone, then 600 B each at half the speed, then 400 B alone.
  const Simulation s = run({{1000, 0}, {1000, 400}});
  EXPECT_EQ(copy(s, 0), span(0, 1600));
  EXPECT_EQ(copy(s, 1), span(400, 2000));
}

TEST_F(BusTest, AShortCopyGivesItsPartBack) {
  // 100 B each at a quarter of the speed, then 300 B each at a third.
  const Simulation s = run({{100, 0}, {400, 0}, {400, 0}, {400, 0}});
  EXPECT_EQ(copy(s, 0), span(0, 400));
  for (std::size_t d = 1; d < 4; ++d) EXPECT_EQ(copy(s, d), span(0, 1300));
}

TEST_F(BusTest, LatencyTakesNothingOfTheBus) {
  const Simulation s = run({{1000, 0}, {1000, 900}}, Nanos{100});
  EXPECT_EQ(copy(s, 0), span(0, 1200)) << "the other joins the bus at 1000, with 100 B left";
  EXPECT_EQ(copy(s, 1).start, Nanos{900});
}

TEST_F(BusTest, ACopyIsNoFasterThanItsLink) {
  const Simulation s = run({{1000, 0}, {1000, 0}}, {}, 1.5e9);
  EXPECT_EQ(copy(s, 0), span(0, 1334)) << "three quarters of the link's speed, rounded up";
  const Simulation wide = run({{1000, 0}, {1000, 0}}, {}, 100e9);
  EXPECT_EQ(copy(wide, 0), span(0, 1000));
}

TEST(SharedBuses, WideOnesChangeNothing) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    auto a = testing::random_plan(seed * 2);
    auto b = testing::random_plan(seed * 2 + 1);
    ASSERT_TRUE(a && b);
    testing::SpacedPlan p = testing::TwoDevices({a->program, a->lowered.plan, a->machine},
                                                {b->program, b->lowered.plan, b->machine})
                                .make();
    constexpr int kTimes = 5;
    const Simulation alone = simulate(p.program, p.plan, p.machine, kTimes);
    p.machine.buses = {1e18, 1e18};
    for (Link& link : p.machine.links) link.bus = link.to == p.machine.host() ? 0 : 1;
    ASSERT_TRUE(p.machine.shares_buses());
    const Simulation shared = simulate(p.program, p.plan, p.machine, kTimes);
    EXPECT_TRUE(shared.iterations == alone.iterations);
    EXPECT_EQ(shared.iteration_end, alone.iteration_end);
    EXPECT_EQ(shared.iteration_time, alone.iteration_time);
  }
}

TEST(SharedBuses, NarrowOnesMakeNothingFaster) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    auto a = testing::random_plan(seed);
    ASSERT_TRUE(a);
    Machine machine = a->machine;
    const Nanos wide = long_run(a->program, a->lowered.plan, machine).iteration_time;
    machine.buses = {machine.to_host().bytes_per_second / 3};
    for (Link& link : machine.links) link.bus = 0;
    const LongRun narrow = long_run(a->program, a->lowered.plan, machine);
    EXPECT_GE(narrow.iteration_time + Nanos{1}, wide);
  }
}

}  // namespace
}  // namespace tidepool
