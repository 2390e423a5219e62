#include "planners/toolkit/room_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/candidate_gaps.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;

constexpr Bytes kBytes = 1 << 20;
constexpr Bytes kLarge = 8 * kBytes;
constexpr OpId kMiddle = 5;

/// A large value and four small ones that the last op reads, made before the op `middle`, which
/// needs a workspace of two small ones.
Program room_program() {
  testing::ProgramBuilder b("room");
  std::vector<Access> all;
  for (int i = 0; i < 5; ++i) {
    const TensorId x = b.tensor("x" + std::to_string(i), i == 0 ? kLarge : kBytes);
    b.device("make" + std::to_string(i), {{x, write}}, std::chrono::milliseconds(5));
    all.push_back({x, read});
  }
  b.device("middle", {}, std::chrono::milliseconds(10), 2 * kBytes);
  b.device("end", all, std::chrono::milliseconds(5));
  return b.build();
}

class RoomMovesTest : public ::testing::Test {
 protected:
  RoomMovesTest()
      : program_(room_program()),
        machine_(*find_machine("gtx1080ti")),
        lowering_(program_, machine_),
        algorithms_(least_workspace_algorithms(program_)),
        movable_(candidate_gaps(program_, lowering_.index(), kBytes)),
        moves_(lowering_, algorithms_, movable_, {}),
        away_(lowering_.index().gaps().size(), kStays) {}

  [[nodiscard]] Bytes bytes(std::size_t gap) const {
    return program_.tensors[at(lowering_.index().gaps()[gap].tensor)].bytes;
  }
  [[nodiscard]] static bool spans(const Gap& gap, OpId op) {
    return !gap.wraps && gap.from < op && gap.to > op;
  }
  /// Per op, without workspaces.
  [[nodiscard]] std::vector<Bytes> load(const AwayGaps& away) const {
    std::vector<Bytes> load =
        load_profile(program_, lowering_.index(), machine_.alignment(), algorithms_).at_op;
    load[at(kMiddle)] -= 2 * kBytes;
    for (std::size_t g = 0; g < away.size(); ++g) {
      if (away[g] == kStays) continue;
      for (OpId op = 0; op < static_cast<OpId>(load.size()); ++op) {
        if (spans(lowering_.index().gaps()[g], op)) load[at(op)] -= bytes(g);
      }
    }
    return load;
  }
  AwayGaps after(GapId gap, Bytes limit, std::uint64_t seed) {
    Random random(seed);
    const auto now = load(away_);
    moves_.exchange({away_, algorithms_, now, limit}, gap, random);
    AwayGaps then = away_;
    for (const auto& [g, to] : moves_.move().gaps) then[at(g)] = to;
    return then;
  }
  [[nodiscard]] GapId of_tensor(TensorId t) const {
    for (const GapId g : movable_) {
      const Gap& gap = lowering_.index().gaps()[at(g)];
      if (gap.tensor == t && spans(gap, kMiddle)) return g;
    }
    return kNone;
  }

  Program program_;
  Machine machine_;
  Lowering lowering_;
  std::vector<std::int32_t> algorithms_;
  std::vector<GapId> movable_;
  RoomMoves moves_;
  AwayGaps away_;
};

TEST_F(RoomMovesTest, ForWhatComesBackOthersLeaveUntilItFitsAtEveryOp) {
  const GapId large = of_tensor(0);
  away_[at(large)] = kCopied;
  // All but two of the small ones beside it and the workspace.
  const Bytes limit = kLarge + 2 * kBytes + 2 * kBytes;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const AwayGaps then = after(large, limit, seed);
    EXPECT_EQ(then[at(large)], kStays);
    EXPECT_EQ(std::count(then.begin(), then.end(), kCopied), 2);
    EXPECT_LE(load(then)[at(kMiddle)] + 2 * kBytes, limit);
  }
}

TEST_F(RoomMovesTest, WhereLittleIsMissingLittleLeaves) {
  const GapId small = of_tensor(1);
  away_[at(small)] = kCopied;
  const Bytes limit = kLarge + 3 * kBytes + 2 * kBytes;
  int large = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const AwayGaps then = after(small, limit, seed);
    EXPECT_EQ(std::count(then.begin(), then.end(), kCopied), 1);
    large += then[at(of_tensor(0))] == kCopied ? 1 : 0;
  }
  EXPECT_LT(large, 5);
}

TEST_F(RoomMovesTest, WhatLeavesGivesItsRoomToOthers) {
  for (TensorId t = 1; t <= 4; ++t) away_[at(of_tensor(t))] = kCopied;
  const Bytes limit = kLarge + 2 * kBytes;
  int came_back = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const AwayGaps then = after(of_tensor(0), limit, seed);
    EXPECT_EQ(then[at(of_tensor(0))], kCopied);
    EXPECT_LE(load(then)[at(kMiddle)] + 2 * kBytes, limit);
    came_back += std::count(then.begin(), then.end(), kCopied) == 1 ? 1 : 0;
  }
  // All four, unless chance looks at an op that nothing spans.
  EXPECT_GT(came_back, 5);
}

TEST_F(RoomMovesTest, NothingElseMovesWhereThereIsRoom) {
  away_[at(of_tensor(0))] = kCopied;
  after(of_tensor(0), 2 * kLarge, 1);
  EXPECT_EQ(moves_.move().gaps.size(), 1U);
  away_[at(of_tensor(0))] = kStays;
  after(of_tensor(1), 2 * kLarge, 1);
  EXPECT_EQ(moves_.move().gaps.size(), 1U);
}

TEST_F(RoomMovesTest, WhatMayBeRemadeLeavesEitherWay) {
  const GapId large = of_tensor(0);
  const std::vector<RemakableGap> remakable{{large, 0, 6, kLarge, Nanos{1000}, {}}};
  RoomMoves moves(lowering_, algorithms_, movable_, remakable);
  std::set<char> ways;
  const auto now = load(away_);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    moves.exchange({away_, algorithms_, now, 2 * kLarge}, large, random);
    ways.insert(moves.move().gaps.front().second);
  }
  EXPECT_EQ(ways, (std::set<char>{kCopied, kRemade}));
}

}  // namespace
}  // namespace tidepool
