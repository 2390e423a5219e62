// Plans over two devices, and over a third tier below the host: proof, simulator and fake device
// know spaces and links, not a device and a host.
#include "support/spaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/check.h"
#include "runtime/executor.h"
#include "sim/simulate.h"
#include "support/attacks.h"
#include "support/fake_device.h"
#include "support/random_plan.h"
#include "support/run_plan.h"
#include "support/sanitized.h"
#include "support/tag_runner.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::random_plan;
using testing::SpacedPlan;
using testing::TagRunner;

std::uint64_t plans() { return testing::some<std::uint64_t>(testing::usual_or(16, 8), 40); }

SpacedPlan two_devices(std::uint64_t seed) {
  auto a = random_plan(seed * 2);
  auto b = random_plan(seed * 2 + 1);
  EXPECT_TRUE(a && b);
  // Unguarded ops of one training may be guarded in the other: guards are drawn for both alike.
  return testing::TwoDevices({a->program, a->lowered.plan, a->machine},
                             {b->program, b->lowered.plan, b->machine})
      .make();
}

SpacedPlan file_tier(std::uint64_t seed) {
  auto drawn = random_plan(seed);
  EXPECT_TRUE(drawn);
  return testing::FileTier(drawn->program, drawn->lowered.plan, drawn->machine, seed).make();
}

std::size_t copies_between(const Plan& plan, SpaceKind from, SpaceKind to) {
  return static_cast<std::size_t>(
      std::ranges::count_if(plan.steady.instructions, [&](const Instruction& x) {
        return x.kind == InstructionKind::copy && plan.kind_of(x.from) == from &&
               plan.kind_of(x.to) == to;
      }));
}

std::vector<std::int32_t> algorithms_of(const SpacedPlan& p) {
  std::vector<std::int32_t> algorithms(p.program.ops.size(), 0);
  for (const Instruction& x : p.plan.steady.instructions) {
    if (x.kind == InstructionKind::op) algorithms[static_cast<std::size_t>(x.op)] = x.algorithm;
  }
  return algorithms;
}

void expect_proved(const SpacedPlan& p) {
  EXPECT_EQ(inconsistency(p.machine), "");
  const auto proof = check(p.program, p.plan, p.limits);
  EXPECT_TRUE(proof) << proof.error().message;
}

/// Every start and end, in the order of calls.
void expect_simulated_as_run(const SpacedPlan& p) {
  FakeScript script;
  script.op_time = [&p](const WorkLabel& label) {
    if (label.op < 0) return Nanos{0};
    return p.program.ops[static_cast<std::size_t>(label.op)]
        .algorithms[static_cast<std::size_t>(label.algorithm)]
        .time;
  };
  script.copy_time = [&p](CopyRoute route, Bytes bytes) {
    return p.machine.find_link(route.from, route.to)->speed.time(bytes);
  };
  constexpr int kIterations = 4;
  const Simulation simulation = simulate(p.program, p.plan, p.machine, kIterations);
  FakeDevice device(script);
  TagRunner runner(p.program);
  Executor executor(p.program, p.plan, device, runner);
  const RunReport report = executor.run(kIterations);
  std::size_t next = 0;
  Nanos end{0};
  for (int it = 0; it < kIterations; ++it) {
    const auto iteration = static_cast<std::size_t>(it);
    for (std::size_t s = 0; s < p.plan.steady.instructions.size(); ++s, ++next) {
      const FakeRecord& record = device.records()[next];
      ASSERT_EQ((Span{record.start, record.end}), simulation.iterations[iteration][s]);
    }
    end += report.iteration_times[iteration];
    EXPECT_EQ(end, simulation.iteration_end[iteration]) << "of all devices";
  }
  EXPECT_THAT(device.races(), ::testing::IsEmpty());
}

void expect_right_at_any_speed(const SpacedPlan& p, std::uint64_t seed) {
  constexpr std::int64_t kIterations = 4;
  TagRunner meaning(p.program);
  testing::run_in_order(p.program, algorithms_of(p), kIterations, meaning);
  for (std::uint64_t speed = 0; speed < testing::some<std::uint64_t>(3, 6); ++speed) {
    const auto outcome =
        testing::run_at_random_speed(p.program, p.plan, meaning, kIterations, seed * 31 + speed);
    EXPECT_TRUE(outcome.values_right);
    EXPECT_EQ(outcome.races, 0u);
  }
}

TEST(Spaces, PlansForTwoDevicesAreProvedSimulatedAndRunRight) {
  for (std::uint64_t seed = 0; seed < plans(); ++seed) {
    SCOPED_TRACE(seed);
    const SpacedPlan p = two_devices(seed);
    EXPECT_EQ(copies_between(p.plan, SpaceKind::device, SpaceKind::device), 1u);
    expect_proved(p);
    expect_simulated_as_run(p);
    expect_right_at_any_speed(p, seed);
  }
}

TEST(Spaces, PlansWithAFileBelowTheHostAreProvedSimulatedAndRunRight) {
  std::size_t copies = 0;
  for (std::uint64_t seed = 0; seed < plans(); ++seed) {
    SCOPED_TRACE(seed);
    const SpacedPlan p = file_tier(seed);
    copies += copies_between(p.plan, SpaceKind::file, SpaceKind::host);
    expect_proved(p);
    expect_simulated_as_run(p);
    expect_right_at_any_speed(p, seed);
  }
  EXPECT_GT(copies, plans() / 2);
}

class Refusals : public ::testing::Test {
 protected:
  static std::string refusal(const SpacedPlan& p) {
    const auto proof = check(p.program, p.plan, p.limits);
    return proof ? "accepted" : proof.error().message;
  }
  /// A plan that uses its file.
  static SpacedPlan with_file() {
    for (std::uint64_t seed = 0;; ++seed) {
      SpacedPlan p = file_tier(seed);
      if (copies_between(p.plan, SpaceKind::file, SpaceKind::host) > 0) return p;
    }
  }
  static Instruction& first_copy(SpacedPlan& p, SpaceKind from, SpaceKind to) {
    return *std::ranges::find_if(p.plan.steady.instructions, [&](const Instruction& x) {
      return x.kind == InstructionKind::copy && p.plan.kind_of(x.from) == from &&
             p.plan.kind_of(x.to) == to;
    });
  }
};

TEST_F(Refusals, EverySpaceHasABudgetOfItsOwn) {
  for (SpacedPlan p : {two_devices(3), with_file()}) {
    ASSERT_EQ(refusal(p), "accepted");
    for (std::size_t s = 0; s < p.limits.spaces.size(); ++s) {
      --p.limits.spaces[s].bytes;
      EXPECT_THAT(refusal(p), AllOf(HasSubstr("(1)"), HasSubstr("exceeds the"))) << s;
      ++p.limits.spaces[s].bytes;
    }
  }
}

TEST_F(Refusals, CopiesNeedALink) {
  SpacedPlan p = two_devices(1);
  std::erase_if(p.limits.links, [](const CheckLimits::Link& l) { return l.from + l.to == 1; });
  EXPECT_THAT(refusal(p), AllOf(HasSubstr("(0)"), HasSubstr("from device 0 to device 1")));
  p = with_file();
  std::erase_if(p.limits.links, [](const CheckLimits::Link& l) { return l.to == 2; });
  EXPECT_THAT(refusal(p), AllOf(HasSubstr("(0)"), HasSubstr("from host to file")));
}

TEST_F(Refusals, LinksOfOneChannelNeedOneStream) {
  SpacedPlan p = with_file();
  for (CheckLimits::Link& l : p.limits.links) {
    if (l.from == 2 || l.to == 2) l.channel = 9;
  }
  EXPECT_THAT(refusal(p), AllOf(HasSubstr("(0)"), HasSubstr("take turns")));
}

TEST_F(Refusals, AnOpRunsOnItsOwnDevice) {
  SpacedPlan p = two_devices(2);
  const auto op = std::ranges::find(p.program.ops, "b forward 0@0", &Op::name);
  ASSERT_NE(op, p.program.ops.end());
  const auto id = static_cast<OpId>(op - p.program.ops.begin());
  for (Instruction& x : p.plan.steady.instructions) {
    if (x.op == id) x.stream = 0;
  }
  EXPECT_THAT(refusal(p), HasSubstr("(0)"));
  p = two_devices(2);
  p.program.ops[static_cast<std::size_t>(id)].device = 0;
  EXPECT_THAT(refusal(p), AllOf(HasSubstr("(0)"), HasSubstr("is on a stream of device 1")));
}

TEST_F(Refusals, AForgottenWaitBelowTheHostIsARace) {
  SpacedPlan p = with_file();
  first_copy(p, SpaceKind::file, SpaceKind::host).waits.clear();
  EXPECT_THAT(refusal(p), AllOf(HasSubstr("(2)"), HasSubstr("byte")));
}

TEST_F(Refusals, AForgottenWaitBetweenDevicesIsARace) {
  SpacedPlan p = two_devices(4);
  Instruction& across = first_copy(p, SpaceKind::device, SpaceKind::device);
  across.waits.erase(across.waits.begin());  // the op that writes what is copied
  EXPECT_THAT(refusal(p), AllOf(HasSubstr("(2)"), HasSubstr("device 0 byte")));
}

TEST(DevicesWithOneArena, RefuseWhatNeedsMore) {
  DeviceConfig config{64, 64, {}};
  EXPECT_NO_THROW(require_one_device(config));
  config.arenas.push_back({SpaceKind::file, 64});
  EXPECT_THROW(require_one_device(config), DeviceError);
  config.arenas = {{SpaceKind::device, 1}, {SpaceKind::device, 1}};
  EXPECT_THROW(require_one_device(config), DeviceError);
}

}  // namespace
}  // namespace tidepool
