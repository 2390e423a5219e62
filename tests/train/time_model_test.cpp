#include "train/op_times.h"

#include <gtest/gtest.h>

#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;

/// Two device ops of two algorithms each, one that a host op follows.
class OpTimesTest : public ::testing::Test {
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
  Program program_;
  Plan plan_;
};

TEST_F(OpTimesTest, TheFactorIsOfWhatWasMeasured) {
  EXPECT_EQ(measured_factor(program_, plan_, seen({Nanos{50}, Nanos{150}, Nanos{5}})), 0.5);
  EXPECT_EQ(
      measured_factor(program_, plan_,
                      seen({Nanos{200}, Observation::kNotMeasured, Observation::kNotMeasured})),
      2);
  EXPECT_EQ(measured_factor(program_, plan_, seen({})), 1);
}

TEST_F(OpTimesTest, MeasuredOpsTakeTheirTimesOthersTheFactor) {
  const Observation o = seen({Nanos{50}, Nanos{450}, Observation::kNotMeasured});
  const double factor = measured_factor(program_, plan_, o);
  EXPECT_EQ(factor, 1.25);
  take_measured_times(plan_, o, program_);
  EXPECT_EQ(program_.ops[0].algorithms[0].time, Nanos{50});
  EXPECT_EQ(program_.ops[0].algorithms[1].time, Nanos{100});
  EXPECT_EQ(program_.ops[1].algorithms[0].time, Nanos{450});
  EXPECT_EQ(program_.ops[1].algorithms[1].time, Nanos{900});
  EXPECT_EQ(program_.ops[2].algorithms[0].time, Nanos{13});
  EXPECT_EQ(program_.ops[2].algorithms[1].time, Nanos{25});
}

TEST_F(OpTimesTest, ARecomputationSaysNothingMore) {
  plan_.steady.instructions.push_back(plan_.steady.instructions[0]);
  EXPECT_EQ(
      measured_factor(program_, plan_, seen({Nanos{100}, Nanos{300}, Nanos{10}, Nanos{100'000}})),
      1);
}

}  // namespace
}  // namespace tidepool
