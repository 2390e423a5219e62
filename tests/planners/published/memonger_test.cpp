#include "planners/published/memonger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/load_profile.h"
#include "lower/overhead.h"
#include "planning/make_plan.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int kLayersOfChain = 36;
constexpr Bytes kMap = 1000;
constexpr Nanos kForwardTime{10};
constexpr Nanos kBackwardTime{20};

/// Equal layers without weights: forward i reads x(i) and makes x(i+1); backward i reads it and the
/// gradient.
Program equal_chain(int layers) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  std::vector<TensorId> x{b.tensor("x0", kMap)};
  b.host("feed", {{x[0], write}});
  for (int i = 0; i < layers; ++i) {
    x.push_back(b.tensor(fmt::format("x{}", i + 1), kMap));
    b.device(fmt::format("forward{}", i), {{x[i], read}, {x[i + 1], write}}, kForwardTime);
    b.last().phase = Phase::forward;
    b.last().layer = i;
  }
  TensorId gradient = kNone;
  for (int i = layers; i-- > 0;) {
    const TensorId next = b.tensor(fmt::format("dx{}", i), kMap);
    std::vector<Access> accesses{{x[i + 1], read}, {next, write}};
    if (gradient != kNone) accesses.push_back({gradient, read});
    b.device(fmt::format("backward{}", i), std::move(accesses), kBackwardTime);
    b.last().phase = Phase::backward;
    b.last().layer = i;
    gradient = next;
  }
  Program program = b.build();
  for (int i = 0; i < layers; ++i) program.layers.push_back(fmt::format("layer{}", i));
  return program;
}

Planned plan_memonger(const Program& program, Bytes budget) {
  FixedWorkload workload(program);
  auto planned =
      make_plan(*make_memonger(), workload, testing::byte_a_nanosecond(1), {budget, 0}, {});
  EXPECT_TRUE(planned) << planned.error().message;
  return std::move(*planned);
}

/// Tensors that wait for backward on the device.
std::vector<std::string> kept(const Program& program, const Strategy& strategy) {
  std::vector<std::string> names;
  const AccessIndex index(program);
  for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
    const Gap& gap = index.gaps()[g];
    const bool turns = program.ops[static_cast<std::size_t>(gap.from)].phase == Phase::forward &&
                       program.ops[static_cast<std::size_t>(gap.to)].phase == Phase::backward;
    if (!turns || strategy.gaps[g] != Decision::keep) continue;
    names.push_back(program.tensors[static_cast<std::size_t>(gap.tensor)].name);
  }
  return names;
}

TEST(Memonger, AChainIsCutIntoEqualBlocksOfAboutTheSquareRoot) {
  const Program program = equal_chain(kLayersOfChain);
  const Planned planned = plan_memonger(program, 1'000'000);
  const auto stays = kept(program, planned.lowered.strategy);
  // Between half and twice of the square root of the layers.
  EXPECT_GE(stays.size(), 3U);
  EXPECT_LE(stays.size(), 12U);
  for (std::size_t i = 1; i + 1 < stays.size(); ++i) {
    EXPECT_EQ(std::stoi(stays[i + 1].substr(1)) - std::stoi(stays[i].substr(1)),
              std::stoi(stays[i].substr(1)) - std::stoi(stays[i - 1].substr(1)));
  }
  // Everything kept: one map for each layer, and a gradient or two.
  EXPECT_LE(planned.lowered.peak_load, (2 * 6 + 5) * kMap);
  EXPECT_FALSE(planned.lowered.streaming);
}

TEST(Memonger, NothingRunsMoreThanOnceAgain) {
  const Program program = equal_chain(kLayersOfChain);
  const Planned planned = plan_memonger(program, 1'000'000);
  const Nanos extra = planned.lowered.compute_time -
                      compute_time(program, std::vector<std::int32_t>(program.ops.size(), 0));
  EXPECT_GT(extra, kLayersOfChain / 2 * kForwardTime);
  EXPECT_LE(extra, kLayersOfChain * kForwardTime) << "one more forward pass at the most";
}

TEST(Memonger, NothingIsCopied) {
  const Program program = equal_chain(kLayersOfChain);
  for (const Decision decision : plan_memonger(program, 1'000'000).lowered.strategy.gaps) {
    EXPECT_TRUE(decision == Decision::keep || decision == Decision::recompute);
  }
}

TEST(Memonger, TheCutsDoNotDependOnTheBudget) {
  const Program program = equal_chain(kLayersOfChain);
  const Planned much = plan_memonger(program, 1'000'000);
  const Planned little = plan_memonger(program, much.lowered.peak_load);
  EXPECT_EQ(much.lowered.strategy.gaps, little.lowered.strategy.gaps);
}

TEST(Memonger, WhereTwoValuesGoOnForwardIsNotCut) {
  // x2 is also read by the forward op of layer 5: blocks may not end behind layers 2 to 4.
  Program program = equal_chain(8);
  const auto tensor = [&](std::string_view name) {
    return static_cast<TensorId>(std::find_if(program.tensors.begin(), program.tensors.end(),
                                              [&](const Tensor& t) { return t.name == name; }) -
                                 program.tensors.begin());
  };
  program.ops[6].accesses.push_back({tensor("x2"), AccessMode::read});
  const auto stays = kept(program, plan_memonger(program, 1'000'000).lowered.strategy);
  for (const std::string& name : stays) {
    EXPECT_TRUE(name != "x3" && name != "x4" && name != "x5") << name;
  }
}

TEST(Memonger, WhereItDoesNotFitTheStreamingScheduleIsUsedAndANoteSaysSo) {
  const Program program = equal_chain(kLayersOfChain);
  const Planned planned = plan_memonger(program, smallest_budget(program, 1).bytes);
  EXPECT_TRUE(planned.lowered.streaming);
  EXPECT_THAT(planned.notes, Contains(HasSubstr("memonger cannot train")));
}

}  // namespace
}  // namespace tidepool
