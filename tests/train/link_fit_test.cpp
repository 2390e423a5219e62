// Links follow what copies took.
#include "train/link_fit.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

class LinkFitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    machine_.set_links({1e9, Nanos{1000}}, {1e9, Nanos{1000}});
    plan_.placements.resize(2);
    plan_.placements[0].space = 0;
    plan_.placements[1].space = machine_.host();
  }
  /// Out, so many bytes, in this time.
  void saw(Bytes bytes, Nanos took) {
    Instruction copy;
    copy.kind = InstructionKind::copy;
    copy.from = PlacementId{0};
    copy.to = PlacementId{1};
    copy.bytes = bytes;
    plan_.steady.instructions.push_back(copy);
    observation_.durations.push_back(took);
  }
  [[nodiscard]] Machine fitted() const {
    Machine machine = machine_;
    const ObservedPlan seen{plan_, observation_};
    follow_links({&seen, 1}, machine);
    return machine;
  }
  Machine machine_;
  Plan plan_;
  Observation observation_;
};

TEST_F(LinkFitTest, FindsLatencyAndSpeed) {
  for (const Bytes bytes : {100, 5'000, 70'000, 1'000'000}) saw(bytes, Nanos{90'000 + 2 * bytes});
  const LinkSpeed out = fitted().to_host();
  EXPECT_NEAR(out.bytes_per_second, 0.5e9, 1e3);
  EXPECT_NEAR(static_cast<double>(out.latency.count()), 90'000, 1);
}

TEST_F(LinkFitTest, CopiesTakeInAllWhatTheyTook) {
  Nanos measured{0};
  for (const Bytes bytes : {100, 5'000, 70'000, 300'000, 1'000'000}) {
    const Nanos took{30'000 + bytes + (bytes / 1000 % 7) * 5'000};
    saw(bytes, took);
    measured += took;
  }
  const LinkSpeed out = fitted().to_host();
  Nanos predicted{0};
  for (const Instruction& copy : plan_.steady.instructions) predicted += out.time(copy.bytes);
  EXPECT_NEAR(to_seconds(predicted), to_seconds(measured), 1e-8);
}

TEST_F(LinkFitTest, OneThatIsAsFastAsItSaysStays) {
  for (const Bytes bytes : {100, 5'000, 1'000'000}) saw(bytes, machine_.to_host().time(bytes));
  const LinkSpeed out = fitted().to_host();
  EXPECT_NEAR(out.bytes_per_second, 1e9, 1e3);
  EXPECT_NEAR(static_cast<double>(out.latency.count()), 1000, 1);
}

TEST_F(LinkFitTest, CopiesOfOneSizeMakeItSlowerAsAWhole) {
  saw(1'000'000, 3 * machine_.to_host().time(1'000'000));
  saw(1'000'000, 3 * machine_.to_host().time(1'000'000));
  const LinkSpeed out = fitted().to_host();
  EXPECT_NEAR(out.bytes_per_second, 1e9 / 3, 1);
  EXPECT_EQ(out.latency, Nanos{3000});
}

TEST_F(LinkFitTest, TheOtherDirectionAndWhatWasNotMeasuredSayNothing) {
  saw(1'000'000, Observation::kNotMeasured);
  const Machine machine = fitted();
  EXPECT_EQ(machine.to_host().bytes_per_second, 1e9);
  saw(1'000'000, Nanos{9'000'000});
  EXPECT_EQ(fitted().to_device().bytes_per_second, 1e9);
  EXPECT_EQ(fitted().to_device().latency, Nanos{1000});
}

}  // namespace
}  // namespace tidepool
