#include "planners/toolkit/strategy_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "ir/load_profile.h"
#include "lower/expand.h"
#include "support/odd_program.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

/// x: fed by the host, read by a, b and c. y: written by a, read by b and c, and the host.
/// z: written by b, which must not run again, read by c. w: persistent, read by a and c, updated at
/// the end.
struct BuilderSubject {
  Program program = make();
  AccessIndex index{program};
  static Program make() {
    using enum AccessMode;
    testing::ProgramBuilder b;
    const TensorId x = b.tensor("x", 64);
    const TensorId y = b.tensor("y", 64);
    const TensorId z = b.tensor("z", 64);
    const TensorId w = b.tensor("w", 64, true);
    b.host("feed", {{x, write}});
    b.device("a", {{x, read}, {w, read}, {y, write}}, Nanos{10});
    b.device("b", {{x, read}, {y, read}, {z, write}}, Nanos{10});
    b.last().recomputable = false;
    b.device("c", {{x, read}, {y, read}, {z, read}, {w, read}}, Nanos{10});
    b.device("update", {{w, update}}, Nanos{10});
    b.host("collect", {{y, read}});
    return b.build();
  }
  /// The gap of a tensor that begins at an op.
  [[nodiscard]] GapId gap(std::string_view tensor, std::string_view op) const {
    for (GapId g = 0; g < static_cast<GapId>(index.gaps().size()); ++g) {
      const Gap& gap = index.gaps()[static_cast<std::size_t>(g)];
      if (program.tensors[static_cast<std::size_t>(gap.tensor)].name == tensor &&
          program.ops[static_cast<std::size_t>(gap.from)].name == op) {
        return g;
      }
    }
    return kNone;
  }
  [[nodiscard]] StrategyBuilder builder() const {
    return {program, index, least_workspace_algorithms(program)};
  }
};

CopyHint hint_for(GapId gap, std::optional<OpId> in_trigger = {},
                  std::optional<OpId> out_barrier = {}) {
  CopyHint hint;
  hint.gap = gap;
  hint.in_trigger = in_trigger;
  hint.out_barrier = out_barrier;
  return hint;
}

TEST(StrategyBuilder, BeginsWithEverythingKept) {
  const BuilderSubject s;
  const auto strategy = s.builder().build();
  ASSERT_TRUE(strategy);
  EXPECT_EQ(strategy->gaps,
            keep_everything(s.program, s.index, least_workspace_algorithms(s.program)).gaps);
}

TEST(StrategyBuilder, AGapWhoseValueTheHostStillHoldsIsDropped) {
  const BuilderSubject s;
  StrategyBuilder builder = s.builder();
  builder.away(s.gap("x", "a"));  // the host fed it
  builder.away(s.gap("y", "b"));
  EXPECT_EQ(builder.decision(s.gap("x", "a")), Decision::drop);
  EXPECT_EQ(builder.decision(s.gap("y", "b")), Decision::swap);
  builder.away(s.gap("y", "a"));
  EXPECT_EQ(builder.decision(s.gap("y", "a")), Decision::swap) << "the first copies out";
  EXPECT_EQ(builder.decision(s.gap("y", "b")), Decision::drop) << "the second finds it there";
  builder.keep(s.gap("y", "a"));
  EXPECT_EQ(builder.decision(s.gap("y", "b")), Decision::swap) << "and copies out itself again";
  EXPECT_TRUE(builder.build());
}

TEST(StrategyBuilder, AChangedValueIsCopiedOutAgain) {
  const BuilderSubject s;
  StrategyBuilder builder = s.builder();
  builder.away(s.gap("w", "update"));  // over the iteration's end
  EXPECT_EQ(builder.decision(s.gap("w", "update")), Decision::swap);
  builder.away(s.gap("w", "a"));
  EXPECT_EQ(builder.decision(s.gap("w", "a")), Decision::drop) << "as the iteration found it";
  EXPECT_EQ(builder.decision(s.gap("w", "update")), Decision::swap) << "it was updated";
  EXPECT_TRUE(builder.build());
}

TEST(StrategyBuilder, AValueThatNobodyReadsAgainIsNotCopiedOut) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 64);
  b.device("a", {{x, write}}, Nanos{10});
  b.device("b", {{x, read}}, Nanos{10});
  b.device("c", {{x, write}}, Nanos{10});
  b.device("d", {{x, read}}, Nanos{10});
  const Program program = b.build();
  const AccessIndex index(program);
  StrategyBuilder builder(program, index, least_workspace_algorithms(program));
  for (const GapId g : {0, 1, 2}) builder.away(g);
  EXPECT_EQ(builder.decision(0), Decision::swap);
  EXPECT_EQ(builder.decision(1), Decision::drop) << "c overwrites it";
  EXPECT_EQ(builder.decision(2), Decision::swap) << "the host has an older value";
  EXPECT_TRUE(builder.build());
}

TEST(StrategyBuilder, APinnedTensorStays) {
  BuilderSubject s;
  s.program.tensors[1].pinned = true;  // y
  s.index = AccessIndex(s.program);
  StrategyBuilder builder = s.builder();
  builder.away(s.gap("y", "a"));
  const auto strategy = builder.build();
  ASSERT_FALSE(strategy);
  EXPECT_THAT(strategy.error().message, ::testing::AllOf(HasSubstr("'y'"), HasSubstr("pinned")));
}

TEST(StrategyBuilder, WhatHasItsHomeOnTheDeviceStaysOverTheIterationsEnd) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId w = b.tensor("w", 64, true);
  b.device("a", {{w, read}}, Nanos{10});
  b.device("b", {{w, update}}, Nanos{10});
  Program program = b.build();
  program.tensors[0].home = Home::device;
  const AccessIndex index(program);
  StrategyBuilder builder(program, index, least_workspace_algorithms(program));
  builder.away(0);
  EXPECT_TRUE(builder.build());
  builder.away(1);
  const auto strategy = builder.build();
  ASSERT_FALSE(strategy);
  EXPECT_THAT(strategy.error().message,
              ::testing::AllOf(HasSubstr("'w'"), HasSubstr("its home is the device")));
}

TEST(StrategyBuilder, NonsenseIsRefusedWithOpAndTensor) {
  const BuilderSubject s;
  const auto refused = [&](const std::function<void(StrategyBuilder&)>& decide) -> std::string {
    StrategyBuilder builder = s.builder();
    decide(builder);
    const auto strategy = builder.build();
    if (strategy) return "not refused";
    EXPECT_EQ(strategy.error().code, ErrorCode::bad_input);
    return strategy.error().message;
  };
  EXPECT_THAT(refused([](auto& b) { b.away(99); }), HasSubstr("no gap 99"));
  EXPECT_THAT(refused([](auto& b) { b.run(1, 7); }), HasSubstr("op 'a' has no algorithm 7"));
  EXPECT_THAT(refused([](auto& b) { b.run(-1, 0); }), HasSubstr("no op -1"));
  EXPECT_THAT(refused([&](auto& b) { b.away(s.gap("x", "feed")); }),
              ::testing::AllOf(HasSubstr("'x'"), HasSubstr("'feed'")));
  EXPECT_THAT(refused([&](auto& b) { b.recompute(s.gap("z", "b")); }),
              ::testing::AllOf(HasSubstr("'z'"), HasSubstr("'b'")));
  EXPECT_THAT(refused([&](auto& b) { b.recompute(s.gap("w", "update")); }),
              ::testing::AllOf(HasSubstr("'w'"), HasSubstr("'update'")));
  EXPECT_THAT(refused([&](auto& b) { b.hint(hint_for(s.gap("y", "a"))); }), HasSubstr("'y'"));
  EXPECT_THAT(
      refused([&](auto& b) {
        b.away(s.gap("y", "a"));
        b.hint(hint_for(s.gap("y", "a"), 4));
      }),
      ::testing::AllOf(HasSubstr("'y'"), HasSubstr("'update'"), HasSubstr("not in the gap")));
}

TEST(StrategyBuilder, AHintLosesItsCopyOutWithTheCopyOut) {
  const BuilderSubject s;
  StrategyBuilder builder = s.builder();
  builder.away(s.gap("y", "b"));
  builder.hint(hint_for(s.gap("y", "b"), 3, 3));
  EXPECT_TRUE(builder.strategy().hints[0].out_barrier);
  builder.away(s.gap("y", "a"));
  EXPECT_FALSE(builder.strategy().hints[0].out_barrier);
  EXPECT_TRUE(builder.strategy().hints[0].in_trigger);
  EXPECT_TRUE(builder.build());
}

/// What it derives is always allowed, and no value is copied out twice.
TEST(StrategyBuilder, WhateverIsAwayOnRandomProgramsCanBeExpanded) {
  int drops = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = seed % 2 == 0 ? testing::random_program(seed)
                                          : testing::odd_program(seed, testing::HostUse::plain);
    const AccessIndex index(program);
    StrategyBuilder builder(program, index, least_workspace_algorithms(program));
    Random random(seed);
    for (GapId g = 0; g < static_cast<GapId>(index.gaps().size()); ++g) {
      if (index.gaps()[static_cast<std::size_t>(g)].kind != GapKind::device) continue;
      if (random.below(2) == 0) builder.away(g);
      if (random.below(8) == 0) builder.keep(g);
    }
    const auto strategy = builder.build();
    ASSERT_TRUE(strategy) << strategy.error().message;
    Expansion expansion;
    ASSERT_EQ(Expander(program, index).expand(*strategy, expansion), "");
    std::set<std::pair<TensorId, std::int32_t>> copied;
    for (const Move& move : expansion.moves) {
      if (!move.out) continue;
      const Gap& gap = index.gaps()[static_cast<std::size_t>(move.gap)];
      if (gap.kind != GapKind::device || gap.wraps) continue;
      EXPECT_TRUE(copied.insert({move.tensor, gap.version}).second)
          << program.tensors[static_cast<std::size_t>(move.tensor)].name;
    }
    drops +=
        static_cast<int>(std::count(strategy->gaps.begin(), strategy->gaps.end(), Decision::drop));
  }
  EXPECT_GT(drops, 50);
}

}  // namespace
}  // namespace tidepool
