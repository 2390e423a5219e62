#include "planners/autoswap/avoidable_overhead.h"

#include <gtest/gtest.h>

#include "support/swap_programs.h"

namespace tidepool {
namespace {

using enum AccessMode;
using testing::byte_a_nanosecond;

constexpr Nanos ns(int n) { return Nanos{n}; }

/// Four tensors of 1000 B, written one after the other, the last by the op with the peak; the
/// others are read again after it, the last one first.
struct Small {
  explicit Small(bool with_weight = false) {
    testing::ProgramBuilder b;
    const TensorId a = b.tensor("a", 1000);
    const TensorId second = b.tensor("b", 1000);
    const TensorId c = b.tensor("c", 1000);
    const TensorId p = b.tensor("p", 1000);
    const TensorId w = with_weight ? b.tensor("w", 1000, true) : kNone;
    b.device("A", {{a, write}}, ns(1000));
    b.device("B", {{second, write}}, ns(1000));
    b.device("C", {{c, write}}, ns(400));
    b.device("P", {{p, write}}, ns(1000));
    b.device("Q", {{c, read}}, ns(1000));
    b.device("R", {{second, read}}, ns(1000));
    b.device("S", {{a, read}}, ns(1000));
    if (with_weight) b.device("U", {{w, update}}, ns(100));
    program = b.build();
  }

  AvoidableOverhead analyse(const std::vector<std::string>& swapped, Bytes limit,
                            Bytes smallest = 1000) {
    const AccessIndex index(program);
    const Machine machine = byte_a_nanosecond();
    const auto algorithms = least_workspace_algorithms(program);
    const SwapCandidates candidates(program, index, machine, algorithms, smallest);
    Strategy strategy = keep_everything(program, index, algorithms);
    for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
      const TensorId tensor = index.gaps()[g].tensor;
      const std::string& name = program.tensors[static_cast<std::size_t>(tensor)].name;
      for (const std::string& s : swapped) {
        if (name == s) strategy.gaps[g] = Decision::swap;
      }
    }
    Evaluator evaluator(program, index, machine);
    EXPECT_TRUE(evaluator.evaluate(strategy, {limit}).feasible);
    return avoidable_overhead(evaluator, candidates, strategy);
  }

  Program program;
};

TEST(AvoidableOverhead, IdleTimeInWhichAKeptTensorCouldHaveGoneOut) {
  // c leaves from 2400 to 3400, P waits 1000. The stream was idle before, and a could have gone.
  const AvoidableOverhead r = Small().analyse({"c"}, 3000);
  EXPECT_EQ(r.copies_out, ns(1000));
  EXPECT_EQ(r.forward_overhead, ns(1000));
  EXPECT_EQ(r.overhead, ns(2000)) << "and Q waits for c, which has room only after P";
  EXPECT_EQ(r.idle_out, ns(3400));
  EXPECT_EQ(r.avoidable, ns(1000));
  EXPECT_DOUBLE_EQ(r.hidden(), 0);
}

TEST(AvoidableOverhead, OnlyFromWhenTheGapBegan) {
  // a is out in time, but one more must be: b could only have gone from 2000 to 2400.
  const AvoidableOverhead r = Small().analyse({"a", "c"}, 2000);
  EXPECT_EQ(r.copies_out, ns(2000));
  EXPECT_EQ(r.forward_overhead, ns(1000));
  EXPECT_EQ(r.avoidable, ns(400));
  EXPECT_DOUBLE_EQ(r.hidden(), 0.8);
}

TEST(AvoidableOverhead, NothingWhereNothingStalls) {
  const AvoidableOverhead r = Small().analyse({"a"}, 3000);
  EXPECT_EQ(r.forward_overhead, ns(0));
  EXPECT_EQ(r.avoidable, ns(0));
  EXPECT_DOUBLE_EQ(r.hidden(), 1);
}

TEST(AvoidableOverhead, SmallTensorsAreNoAlternative) {
  EXPECT_EQ(Small().analyse({"c"}, 3000, 1001).avoidable, ns(0));
}

TEST(AvoidableOverhead, AWeightCouldHaveLeftFromTheStart) {
  // As in the second test, with a weight that nothing needs before U.
  const AvoidableOverhead r = Small(true).analyse({"a", "c"}, 3000);
  EXPECT_EQ(r.forward_overhead, ns(1000));
  EXPECT_EQ(r.avoidable, ns(1000));
}

TEST(AvoidableOverhead, CopiesRunOnIntoTheNextIteration) {
  // w leaves after U, when the iteration is over: the next one begins with the stream taken.
  const AvoidableOverhead r = Small(true).analyse({"w"}, 100'000);
  EXPECT_EQ(r.overhead, ns(0));
  EXPECT_EQ(r.copies_out, ns(1000));
  EXPECT_EQ(r.idle_out, ns(3400 - 1000));
}

TEST(AvoidableOverhead, IsNeverMoreThanTheOverheadOrTheIdleTime) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    const AccessIndex index(program);
    const SwapCandidates candidates(program, index, machine, least_workspace_algorithms(program),
                                    1);
    Evaluator evaluator(program, index, machine);
    const Bytes limit = smallest_budget(program, machine.alignment()).bytes * 3 / 2;
    const Strategy strategy = candidates.select(SwapScore::wdoa, limit).strategy;
    const Evaluation evaluation = evaluator.evaluate(strategy, {limit});
    if (!evaluation.feasible) continue;
    const AvoidableOverhead r = avoidable_overhead(evaluator, candidates, strategy);
    EXPECT_EQ(r.overhead, evaluation.stall());
    EXPECT_LE(r.forward_overhead, r.overhead);
    EXPECT_LE(r.avoidable, r.forward_overhead);
    EXPECT_LE(r.avoidable, r.idle_out);
    EXPECT_GE(r.avoidable, ns(0));
  }
}

}  // namespace
}  // namespace tidepool
