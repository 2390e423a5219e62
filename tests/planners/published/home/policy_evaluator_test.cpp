#include "planners/published/home/policy_evaluator.h"

#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "planners/published/home/plain_policy.h"
#include "support/attacks.h"
#include "support/odd_program.h"
#include "support/random_program.h"
#include "support/sanitized.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using ::testing::Test;
using enum AccessMode;

constexpr std::uint8_t kKeep = 0;
constexpr std::uint8_t kSwap = 1;
constexpr std::uint8_t kRecompute = 2;

/// A program with its feature maps and model.
struct Modelled {
  explicit Modelled(Program p, Machine m = testing::byte_a_nanosecond())
      : program(std::move(p)), machine(std::move(m)) {}

  Program program;
  Machine machine;
  AccessIndex index{program};
  std::vector<std::int32_t> algorithms = least_workspace_algorithms(program);
  FeatureMaps maps{program, index, machine, algorithms, {}};
  PolicyModel model{program, index, machine, algorithms, maps};
  PolicyEvaluator evaluator{model};

  [[nodiscard]] Bytes peak() const {
    return load_profile(program, index, machine.alignment(), algorithms).peak;
  }
  /// Of the tensor's map; the program has one for each tensor.
  std::size_t map_of(std::string_view name) const {
    for (std::size_t i = 0; i < maps.maps().size(); ++i) {
      const Gap& gap = index.gaps()[static_cast<std::size_t>(maps.maps()[i].gap)];
      if (program.tensors[static_cast<std::size_t>(gap.tensor)].name == name) return i;
    }
    ADD_FAILURE() << name;
    return 0;
  }
  PolicyCost cost(const std::vector<std::pair<std::string_view, std::uint8_t>>& actions,
                  Bytes limit) {
    std::vector<std::uint8_t> policy(maps.maps().size(), kKeep);
    for (const auto& [name, action] : actions) policy[map_of(name)] = action;
    return evaluator.evaluate(policy, limit);
  }
};

class Layers {
 public:
  TensorId tensor(std::string name, Bytes bytes) { return b_.tensor(std::move(name), bytes); }
  void forward(int layer, std::vector<Access> accesses, int time, Bytes workspace = 0) {
    add("FWD", layer, Phase::forward, std::move(accesses), time, workspace);
  }
  void backward(int layer, std::vector<Access> accesses, int time, Bytes workspace = 0) {
    add("BWD", layer, Phase::backward, std::move(accesses), time, workspace);
  }
  [[nodiscard]] Program build() const { return b_.build(); }

 private:
  void add(const char* what, int layer, Phase phase, std::vector<Access> accesses, int time,
           Bytes workspace) {
    b_.device(fmt::format("{}{}", what, layer), std::move(accesses), Nanos{time}, workspace);
    b_.last().layer = layer;
    b_.last().phase = phase;
  }
  testing::ProgramBuilder b_;
};

/// The paper's figure 4: tensor 2 is read by layer 2, its copy out lasts longer than FWD3, behind
/// which FWD4 needs the memory, and its copy in longer than BWD4, before BWD3 that reads it.
Program figure_4() {
  Layers l;
  const TensorId tensor2 = l.tensor("tensor2", 100);
  const TensorId a = l.tensor("a", 10);
  const TensorId b = l.tensor("b", 10);
  const TensorId c = l.tensor("c", 10);
  const TensorId g = l.tensor("g", 10);
  const TensorId h = l.tensor("h", 10);
  l.forward(1, {{tensor2, write}}, 5);
  l.forward(2, {{tensor2, read}, {a, write}}, 5);
  l.forward(3, {{a, read}, {b, write}}, 60);
  l.forward(4, {{b, read}, {c, write}}, 10, 100);
  l.backward(4, {{b, read}, {c, read}, {g, write}}, 70);
  l.backward(3, {{g, read}, {tensor2, read}, {h, write}}, 10);
  l.backward(2, {{h, read}}, 5);
  return l.build();
}

constexpr Nanos kComputeOfFigure4{165};

TEST(PolicyEvaluator, SwappingCostsWhatIsNotHiddenBehindTheStagesBesideIt) {
  Modelled m(figure_4());
  const PolicyCost cost = m.cost({{"tensor2", kSwap}}, 150);
  EXPECT_TRUE(cost.fits());
  const Nanos offload2{100};
  const Nanos pre2{100};
  EXPECT_EQ(cost.time, kComputeOfFigure4 + (offload2 - Nanos{60}) + (pre2 - Nanos{70}));
}

TEST(PolicyEvaluator, WhereMemorySufficesNobodyWaitsForTheCopyOutButTheCopyIn) {
  Modelled m(figure_4());
  // Out from 10 to 110, in from there on, for BWD3 at 150.
  EXPECT_EQ(m.cost({{"tensor2", kSwap}}, 1000).time, kComputeOfFigure4 + Nanos{110 + 100 - 150});
}

TEST(PolicyEvaluator, WithoutMemoryForItTheCopyInStartsAtItsReader) {
  // Beside BWD4 there is room for b, c and g, not for tensor 2.
  Modelled m(figure_4());
  EXPECT_EQ(m.cost({{"tensor2", kSwap}}, 120).time, kComputeOfFigure4 + Nanos{100 - 60 + 100});
}

TEST(PolicyEvaluator, WhatIsRecomputedCostsItsProducerAgain) {
  Modelled m(figure_4());
  const PolicyCost cost = m.cost({{"tensor2", kRecompute}}, 150);
  EXPECT_TRUE(cost.fits());
  EXPECT_EQ(cost.time, kComputeOfFigure4 + Nanos{5});
  EXPECT_EQ(cost.recomputing, Nanos{5});
}

TEST(PolicyEvaluator, APolicyThatDoesNotFitIsRankedByItsLargestOvershoot) {
  Modelled m(figure_4());
  // FWD4: tensor 2, b, c and the workspace.
  const PolicyCost kept = m.cost({}, 150);
  EXPECT_EQ(kept.overshoot, 220 - 150);
  EXPECT_FALSE(kept.fits());
  EXPECT_EQ(PolicyEvaluator::number(kept), PolicyEvaluator::kDoesNotFit + 70);
  EXPECT_GT(PolicyEvaluator::number(kept), PolicyEvaluator::number(m.cost({}, 1000)));
}

TEST(PolicyEvaluator, KeepingCostsNothing) {
  Modelled m(figure_4());
  EXPECT_EQ(m.cost({}, 220).time, kComputeOfFigure4);
  EXPECT_TRUE(m.cost({}, 220).fits());
}

/// x is made from nothing, y from x; backward reads y, then x.
Program chain() {
  Layers l;
  const TensorId x = l.tensor("x", 100);
  const TensorId y = l.tensor("y", 100);
  const TensorId z = l.tensor("z", 10);
  const TensorId g = l.tensor("g", 10);
  const TensorId h = l.tensor("h", 10);
  l.forward(1, {{x, write}}, 7);
  l.forward(2, {{x, read}, {y, write}}, 20);
  l.forward(3, {{y, read}, {z, write}}, 1);
  l.backward(3, {{z, read}, {y, read}, {g, write}}, 1);
  l.backward(2, {{g, read}, {h, write}}, 1, 150);
  l.backward(1, {{h, read}, {x, read}}, 1);
  return l.build();
}

constexpr Nanos kComputeOfChain{31};

TEST(PolicyEvaluator, RecomputingWalksBackAndKeepsWhatIsMarkedAndFits) {
  Modelled m(chain());
  // BWD2 needs g, h, its workspace and x.
  const PolicyCost cost = m.cost({{"x", kRecompute}, {"y", kRecompute}}, 270);
  EXPECT_TRUE(cost.fits());
  EXPECT_EQ(cost.time, kComputeOfChain + Nanos{7 + 20});
}

TEST(PolicyEvaluator, WhatDoesNotFitBesideTheReaderIsFreedAndMadeOnceMore) {
  Modelled m(chain());
  // BWD3 reads z and y and makes g: x would be 220 with them.
  const PolicyCost cost = m.cost({{"x", kRecompute}, {"y", kRecompute}}, 219);
  EXPECT_TRUE(cost.fits());
  EXPECT_EQ(cost.time, kComputeOfChain + Nanos{7 + 20 + 7});
}

TEST(PolicyEvaluator, WhereWhatIsMadeAgainAlwaysStaysItMustFit) {
  Modelled m(chain());
  PolicyEvaluator keeping(m.model, RegeneratedMaps::stay);
  std::vector<std::uint8_t> policy(m.maps.maps().size(), kKeep);
  policy[m.map_of("x")] = policy[m.map_of("y")] = kRecompute;
  EXPECT_EQ(keeping.evaluate(policy, 219).overshoot, 270 - 219);
}

TEST(PolicyEvaluator, RecomputingFromASwappedAncestorBringsItBack) {
  Modelled m(chain());
  const PolicyCost cost = m.cost({{"x", kSwap}, {"y", kRecompute}}, 1000);
  // x is out at 27 + 100; BWD3 waits for that, for the copy in and for FWD2.
  EXPECT_EQ(cost.time, Nanos{27 + 100 + 100 + 20 + 3});
  EXPECT_EQ(cost.recomputing, Nanos{20});
}

TEST(PolicyEvaluator, WhatTheHostFedNeedsNoCopyOut) {
  Program program = chain();
  program.ops[0].place = OpPlace::host;
  program.ops[0].recomputable = false;
  program.ops[0].algorithms[0].time = Nanos{0};
  Modelled m(std::move(program));
  // Asked for at BWD2, waited for by BWD1.
  EXPECT_EQ(m.cost({{"x", kSwap}}, 1000).time, Nanos{20 + 1 + 1 + 100 + 1});
}

TEST(PolicyEvaluator, GivesUpAboveALimitAndNowhereElse) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Modelled m(testing::random_program(seed), testing::random_machine(seed));
    Random random(seed);
    for (int trial = 0; trial < 20; ++trial) {
      std::vector<std::uint8_t> policy;
      for (const auto& of : m.maps.choices()) policy.push_back(of[random.below(of.size())]);
      const auto limit = static_cast<Bytes>(random.uniform() * static_cast<double>(m.peak()));
      const std::int64_t cost = PolicyEvaluator::number(m.evaluator.evaluate(policy, limit));
      EXPECT_EQ(PolicyEvaluator::number(m.evaluator.evaluate(policy, limit, cost)), cost);
      EXPECT_TRUE(m.evaluator.evaluate(policy, limit, cost - 1).gave_up);
    }
  }
}

/// The policies of one program, each under some limits: how many fit, how many recompute.
struct Tried {
  int policies = 0;
  int fit = 0;
  int recompute = 0;
  int stall = 0;
};

void compare_with_plain(Modelled& m, std::uint64_t seed, Tried& tried) {
  const auto regenerated = seed % 4 < 2 ? RegeneratedMaps::stay_if_they_fit : RegeneratedMaps::stay;
  PolicyEvaluator evaluator(m.model, regenerated);
  testing::PlainPolicy plain(m.program, m.index, m.machine, m.algorithms, m.maps, regenerated);
  Random random(seed);
  constexpr int kTrials = 12;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<std::uint8_t> policy;
    const std::uint64_t kept = random.below(4);
    for (const auto& of : m.maps.choices()) {
      policy.push_back(random.below(4) < kept ? kKeep : of[random.below(of.size())]);
    }
    const auto limit =
        static_cast<Bytes>((0.55 + 0.55 * random.uniform()) * static_cast<double>(m.peak()));
    const PolicyCost fast = evaluator.evaluate(policy, limit);
    const PolicyCost slow = plain.evaluate(policy, limit);
    EXPECT_EQ(fast.time, slow.time) << "trial " << trial;
    EXPECT_EQ(fast.overshoot, slow.overshoot) << "trial " << trial;
    EXPECT_EQ(fast.recomputing, slow.recomputing) << "trial " << trial;
    ++tried.policies;
    tried.fit += fast.fits() ? 1 : 0;
    tried.recompute += fast.recomputing > Nanos{0} ? 1 : 0;
    tried.stall += fast.time > m.model.compute_time + fast.recomputing ? 1 : 0;
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(PolicyEvaluator, SaysToTheNanosecondWhatThePlainRulesSay) {
  Tried tried;
  for (std::uint64_t seed = 0;
       seed < testing::some(testing::usual_or(40U, 10U), 300U) && !Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomShape shape;
    shape.most_layers = 14;
    Modelled m(testing::random_program(seed, shape), testing::random_machine(seed));
    compare_with_plain(m, seed, tried);
  }
  EXPECT_GT(tried.fit, tried.policies / 5);
  EXPECT_GT(tried.recompute, tried.policies / 5);
  EXPECT_GT(tried.stall, tried.policies / 5);
}

TEST(PolicyEvaluator, AndInProgramsThatAreNoTrainings) {
  Tried tried;
  testing::OddShape shape{.most_tensors = 12, .most_ops = 40};
  for (std::uint64_t seed = 0;
       seed < testing::some(testing::usual_or(50U, 40U), 400U) && !Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    shape.recorded = seed % 2 == 1;
    Modelled m(testing::odd_program(seed, testing::HostUse::none, shape),
               testing::byte_a_nanosecond(8));
    compare_with_plain(m, seed, tried);
  }
  EXPECT_GT(tried.recompute, 0);
}

}  // namespace
}  // namespace tidepool
