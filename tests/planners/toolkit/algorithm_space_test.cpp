#include "planners/toolkit/algorithm_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;
using ::testing::ElementsAre;
using Algorithms = std::vector<std::int32_t>;

constexpr Bytes kUnlimitedBytes = Bytes{1} << 40;

/// A chain of ops that have these algorithms, of tensors of 1000 bytes.
Program space_program(const std::vector<std::vector<Algorithm>>& ops) {
  testing::ProgramBuilder b("space");
  TensorId last = kNone;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const TensorId x = b.tensor("x" + std::to_string(i), 1000);
    std::vector<Access> accesses{{x, write}};
    if (last != kNone) accesses.push_back({last, read});
    b.device("op" + std::to_string(i), accesses, Nanos{1});
    b.last().algorithms = ops[i];
    last = x;
  }
  return b.build();
}

Algorithm algorithm(Nanos::rep time, Bytes workspace, bool deterministic = true) {
  return {"a", Nanos{time}, workspace, deterministic};
}

AlgorithmSpace space_of(const Program& program, Bytes limit = kUnlimitedBytes) {
  return {program, 1, limit, least_workspace_algorithms(program)};
}

Algorithms candidates(const AlgorithmSpace& space, std::size_t choice) {
  Algorithms result;
  for (const auto& candidate : space.choices()[choice].candidates) {
    result.push_back(candidate.algorithm);
  }
  return result;
}

TEST(AlgorithmSpace, HasWhatNothingElseBeatsInTimeAndWorkspace) {
  const Program program = space_program({{algorithm(50, 300), algorithm(100, 0), algorithm(70, 400),
                                          algorithm(80, 100), algorithm(80, 200)}});
  const AlgorithmSpace space = space_of(program);
  ASSERT_EQ(space.choices().size(), 1U);
  EXPECT_THAT(candidates(space, 0), ElementsAre(1, 3, 0));
  EXPECT_THAT(space.fastest(), ElementsAre(0));
  // Of those that are no candidates: the last that needs no more.
  EXPECT_THAT(space.choices()[0].positions, ElementsAre(2, 0, 2, 1, 1));
  EXPECT_EQ(space.choices()[0].saving(), Nanos{50});
}

TEST(AlgorithmSpace, LeavesOutWhatIsNotRepeatableOrUnmeasuredOrDoesNotFit) {
  const Program program =
      space_program({{algorithm(100, 0), algorithm(50, 100, false), algorithm(0, 200),
                      algorithm(60, 300), algorithm(40, 400)}});
  EXPECT_THAT(candidates(space_of(program), 0), ElementsAre(0, 3, 4));
  // The op's own tensor takes 1000 bytes.
  EXPECT_THAT(candidates(space_of(program, 1399), 0), ElementsAre(0, 3));
  EXPECT_TRUE(space_of(program, 1299).empty());
  EXPECT_THAT(space_of(program, 1299).fastest(), ElementsAre(0));
}

TEST(AlgorithmSpace, HasNoChoiceWhereOneIsBestInBoth) {
  const Program program =
      space_program({{algorithm(100, 50), algorithm(60, 0)}, {algorithm(9, 9)}});
  EXPECT_TRUE(space_of(program).empty());
  EXPECT_THAT(space_of(program).fastest(), ElementsAre(1, 0));
}

TEST(AlgorithmSpace, GroupsOpsOfEqualOperandsAndCandidatesAndHasTheMostValuableFirst) {
  const std::vector<Algorithm> little{algorithm(100, 0), algorithm(90, 10)};
  const std::vector<Algorithm> much{algorithm(100, 0), algorithm(20, 10), algorithm(10, 20)};
  // The first op has one operand, the others two.
  const Program program = space_program({little, little, much, little, much});
  const AlgorithmSpace space = space_of(program);
  ASSERT_EQ(space.groups().size(), 3U);
  EXPECT_THAT(space.groups()[0], ElementsAre(2, 4));
  EXPECT_THAT(space.groups()[1], ElementsAre(1, 3));
  EXPECT_THAT(space.groups()[2], ElementsAre(0));
  EXPECT_THAT(space.group_of(4), ElementsAre(2, 4));
}

TEST(AlgorithmSpace, FittingTakesTheFastestThatStaysWithinTheLimitAtItsOp) {
  const std::vector<Algorithm> three{algorithm(100, 0), algorithm(60, 100), algorithm(50, 200)};
  const AlgorithmSpace space = space_of(space_program({three, three, three, three}));
  const std::vector<Bytes> load{800, 801, 901, 1001};
  EXPECT_THAT(space.fitting(load, 1000), ElementsAre(2, 1, 0, 0));
}

TEST(AlgorithmSpace, ByValueWeighsTimeAgainstWhatExceedsTheLimit) {
  const std::vector<Algorithm> three{algorithm(100, 0), algorithm(60, 100), algorithm(50, 200)};
  const AlgorithmSpace space = space_of(space_program({three, three}));
  const std::vector<Bytes> load{950, 0};
  EXPECT_THAT(space.by_value(load, 1000, 0), ElementsAre(2, 2));
  // 50 bytes for 40 ns are worth it, 100 more for 10 are not.
  EXPECT_THAT(space.by_value(load, 1000, 0.5), ElementsAre(1, 2));
  EXPECT_THAT(space.by_value(load, 1000, 10), ElementsAre(0, 2));
}

TEST(AlgorithmSpace, RandomChoicesAreMostlyThoseWorthMost) {
  const std::vector<Algorithm> little{algorithm(100, 0), algorithm(99, 10)};
  const std::vector<Algorithm> much{algorithm(1000, 0), algorithm(1, 20)};
  const AlgorithmSpace space = space_of(space_program({much, little, little, little}));
  Random random(1);
  std::vector<int> drawn(4, 0);
  for (int i = 0; i < 400; ++i) ++drawn[space.random_choice(random)];
  for (const int times : drawn) EXPECT_GT(times, 0);
  EXPECT_GT(drawn[0], 200);
}

}  // namespace
}  // namespace tidepool
