// What plans took that ran tells what ops and copies take.
#include "train/time_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/at.h"
#include "lower/budget.h"
#include "lower/lower.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "train/late_clock.h"

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

/// Plans for a random program on a device of three streams that begins late, or does not.
class TimeModelOfALateDevice : public ::testing::Test {
 protected:
  void begin(std::uint64_t seed) {
    testing::RandomShape shape;
    shape.guards = false;
    program_ = testing::random_program(seed, shape);
    for (Op& op : program_.ops) {
      for (Algorithm& a : op.algorithms) a.time += Nanos{40'000};
    }
    machine_ = testing::random_machine(seed);
    machine_.set_links({1e9, Nanos{9'000}}, {1e9, Nanos{9'000}});
  }
  /// With a random part of all gaps away.
  [[nodiscard]] Plan plan(std::uint64_t seed) const {
    Lowering lowering(program_, machine_);
    Strategy strategy = testing::random_strategy(program_, lowering.index(), 0.6, seed);
    strategy.algorithms = least_workspace_algorithms(program_);
    const auto lowered = lowering.lower(strategy, no_limit());
    EXPECT_TRUE(lowered);
    return lowered ? lowered->plan : Plan{};
  }
  [[nodiscard]] Nanos true_time(const Plan& plan) const {
    const testing::LateRun run = testing::run_late(program_, plan, machine_, late_, 400);
    return (run.ends[399] - run.ends[199]) / 200;
  }
  [[nodiscard]] Observation seen(const Plan& plan) const {
    const TimedBlock block = testing::run_late(program_, plan, machine_, late_, 12).timings;
    return observe(plan, {}, {&block, 1});
  }
  Program program_;
  Machine machine_;
  std::vector<Lateness> late_;
};

/// Of one plan that ran follows what others take.
TEST_F(TimeModelOfALateDevice, PredictsPlansThatNeverRan) {
  constexpr int kPrograms = 20;
  double off = 0;
  double off_without = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    begin(seed);
    late_ = {{Nanos{2'000}, Nanos{50'000}},
             {Nanos{1'000}, Nanos{30'000}},
             {Nanos{3'000}, Nanos{40'000}},
             {Nanos{500}, Nanos{20'000}}};
    const Plan ran = plan(1);
    const Plan other = plan(2);
    const Observation observation = seen(ran);
    const ObservedPlan observed{ran, observation};
    const TimeModel now(program_, machine_, {&observed, 1});
    const auto share = [&](Nanos time) { return to_seconds(time) / to_seconds(true_time(other)); };
    off += std::abs(share(now.time(other)) - 1);
    off_without += std::abs(share(TimeModel(program_, machine_).time(other)) - 1);
  }
  EXPECT_LT(off / kPrograms, 0.02);
  EXPECT_GT(off_without / kPrograms, 0.1) << "it decides something";
}

TEST_F(TimeModelOfALateDevice, FindsNothingOnOneThatIsNot) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    begin(seed);
    const Plan ran = plan(1);
    const Plan other = plan(2);
    const Observation observation = seen(ran);
    const ObservedPlan observed{ran, observation};
    const TimeModel now(program_, machine_, {&observed, 1});
    for (const Lateness& late : now.late()) {
      EXPECT_EQ(late.next, Nanos{0});
      EXPECT_EQ(late.woken, Nanos{0});
    }
    EXPECT_NEAR(to_seconds(now.time(other)), to_seconds(true_time(other)), 1e-6);
  }
}

}  // namespace
}  // namespace tidepool
