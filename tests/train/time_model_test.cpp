// What plans took that ran tells what ops and copies take.
#include "train/time_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/at.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;

/// Two device ops of two algorithms each, one that a host op follows.
class TimeModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::ProgramBuilder b;
    const TensorId x = b.tensor("x", 64);
    b.device("a", {{x, write}}, Nanos{100});
    b.device("b", {{x, update}}, Nanos{300});
    b.device("c", {{x, read}}, Nanos{10});
    program_ = b.build();
    for (Op& op : program_.ops)
      op.algorithms.push_back({"other", op.algorithms[0].time * 2, 8, true});
    plan_.streams.emplace_back(Stream{});
    for (OpId op = 0; op < 3; ++op) {
      Instruction run;
      run.kind = InstructionKind::op;
      run.op = op;
      plan_.steady.instructions.push_back(run);
    }
  }
  static Observation seen(std::vector<Nanos> durations) {
    Observation o;
    o.durations = std::move(durations);
    return o;
  }
  /// The seen durations in `plan_`, all ops with this much of copies beside them.
  [[nodiscard]] Observation beside(double slower, Observation::Beside beside) const {
    Observation o;
    for (const Instruction& x : plan_.steady.instructions) {
      const double alone = to_seconds(program_.ops[at(x.op)].algorithms[0].time) * 1e9;
      o.durations.emplace_back(std::llround(slower * alone));
      o.beside.push_back(beside);
    }
    return o;
  }
  [[nodiscard]] TimeModel model(const std::vector<Observation>& seen) const {
    std::vector<ObservedPlan> plans;
    for (const Observation& o : seen) plans.push_back({plan_, o});
    return {program_, {}, plans};
  }
  Program program_;
  Plan plan_;
};

TEST_F(TimeModelTest, TheFactorIsOfWhatWasMeasured) {
  const auto factor = [&](const Observation& o) { return measured_factor(program_, {plan_, o}); };
  EXPECT_EQ(factor(seen({Nanos{50}, Nanos{150}, Nanos{5}})), 0.5);
  EXPECT_EQ(factor(seen({Nanos{200}, Observation::kNotMeasured, Observation::kNotMeasured})), 2);
  EXPECT_EQ(factor(seen({})), 1);
}

TEST_F(TimeModelTest, MeasuredOpsTakeTheirTimesOthersTheFactor) {
  const TimeModel now = model({seen({Nanos{50}, Nanos{450}, Observation::kNotMeasured})});
  const Program& program = now.alone();
  EXPECT_EQ(program.ops[0].algorithms[0].time, Nanos{50});
  EXPECT_EQ(program.ops[0].algorithms[1].time, Nanos{100});
  EXPECT_EQ(program.ops[1].algorithms[0].time, Nanos{450});
  EXPECT_EQ(program.ops[1].algorithms[1].time, Nanos{900});
  EXPECT_EQ(program.ops[2].algorithms[0].time, Nanos{13});
  EXPECT_EQ(program.ops[2].algorithms[1].time, Nanos{25});
}

TEST_F(TimeModelTest, WithNothingSeenItIsTheProfile) {
  const TimeModel now = model({});
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    EXPECT_EQ(now.alone().ops[i].algorithms[0].time, program_.ops[i].algorithms[0].time);
  }
  EXPECT_EQ(now.time(plan_), Nanos{410});
}

/// Twice with nothing beside the ops, once with copies out, once with copies in.
TEST_F(TimeModelTest, TwoTermsExplainWhatCopiesBesideOpsCost) {
  for (auto& op : program_.ops) op.algorithms[0].time *= 1000;
  const std::vector<Observation> all{beside(1, {0, 0}), beside(1.2, {1, 0}), beside(1, {0, 0}),
                                     beside(1.3, {0, 1}), beside(1.25, {0.5, 0.5})};
  const TimeModel now = model(all);
  EXPECT_NEAR(now.slowdown().out, 0.2, 0.01);
  EXPECT_NEAR(now.slowdown().in, 0.3, 0.01);
  EXPECT_NEAR(to_seconds(now.alone().ops[1].algorithms[0].time), 300e-6, 3e-6);
}

/// Times that are wrong anywhere say nothing of copies.
TEST_F(TimeModelTest, AWrongProfileIsNoEvidenceOfSlowdown) {
  const TimeModel now = model({beside(2, {1, 1})});
  EXPECT_EQ(now.slowdown().out, 0);
  EXPECT_EQ(now.slowdown().in, 0);
  EXPECT_EQ(now.alone().ops[0].algorithms[0].time, Nanos{200});
}

}  // namespace
}  // namespace tidepool
