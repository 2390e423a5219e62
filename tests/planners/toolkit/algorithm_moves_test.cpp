#include "planners/toolkit/algorithm_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/candidate_gaps.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;
using ::testing::IsEmpty;

constexpr Bytes kBytes = 1 << 20;

/// Four values that the last op reads, made before the op `middle`, which may run an algorithm with
/// a workspace of two of them.
Program moves_program() {
  testing::ProgramBuilder b("moves");
  std::vector<Access> all;
  for (int i = 0; i < 4; ++i) {
    const TensorId x = b.tensor("x" + std::to_string(i), kBytes);
    b.device("make" + std::to_string(i), {{x, write}}, std::chrono::milliseconds(5));
    all.push_back({x, read});
  }
  const TensorId y = b.tensor("y", kBytes);
  b.device("middle", {{y, write}}, std::chrono::milliseconds(10));
  b.last().algorithms = {{"slow", std::chrono::milliseconds(10), 0, true},
                         {"fast", std::chrono::milliseconds(4), 2 * kBytes, true}};
  all.push_back({y, read});
  b.device("end", all, std::chrono::milliseconds(5));
  return b.build();
}
constexpr OpId kMiddle = 4;

class AlgorithmMovesTest : public ::testing::Test {
 protected:
  AlgorithmMovesTest()
      : program_(moves_program()),
        machine_(*find_machine("gtx1080ti")),
        lowering_(program_, machine_),
        least_(least_workspace_algorithms(program_)),
        space_(program_, machine_.alignment(), Bytes{1} << 40, least_),
        movable_(candidate_gaps(program_, lowering_.index(), kBytes)),
        room_(lowering_, space_.fastest(), movable_, {}),
        moves_(lowering_, space_, room_),
        away_(lowering_.index().gaps().size(), kStays) {}

  /// Per op, of the state as it is, without workspaces.
  [[nodiscard]] std::vector<Bytes> load() const {
    std::vector<Bytes> load =
        load_profile(program_, lowering_.index(), machine_.alignment(), least_).at_op;
    for (std::size_t g = 0; g < away_.size(); ++g) {
      const Gap& gap = lowering_.index().gaps()[g];
      if (away_[g] == kStays || gap.wraps) continue;
      for (OpId op = gap.from + 1; op < gap.to; ++op) load[at(op)] -= kBytes;
    }
    return load;
  }
  template <class See>
  void each_away_at_middle(const AwayGaps& away, See&& see) const {
    for (std::size_t g = 0; g < away.size(); ++g) {
      const Gap& gap = lowering_.index().gaps()[g];
      if (away[g] != kStays && gap.from < kMiddle && gap.to > kMiddle) see();
    }
  }
  [[nodiscard]] Bytes load_after() const {
    AwayGaps away = away_;
    for (const auto& [gap, now] : room_.move().gaps) away[at(gap)] = now;
    Bytes bytes = 5 * kBytes;
    each_away_at_middle(away, [&] { bytes -= kBytes; });
    return bytes;
  }

  Program program_;
  Machine machine_;
  Lowering lowering_;
  std::vector<std::int32_t> least_;
  AlgorithmSpace space_;
  std::vector<GapId> movable_;
  RoomMoves room_;
  AlgorithmMoves moves_;
  AwayGaps away_;
};

TEST_F(AlgorithmMovesTest, WhatAWorkspaceNeedsLeavesWithIt) {
  const auto now = load();
  Random random(1);
  int made_room = 0;
  for (int i = 0; i < 100; ++i) {
    moves_.change_algorithms({away_, least_, now, 5 * kBytes}, random);
    ASSERT_EQ(room_.move().algorithms.size(), 1U);
    EXPECT_EQ(room_.move().algorithms.front(), std::pair(kMiddle, 1));
    if (room_.move().gaps.empty()) continue;
    EXPECT_EQ(load_after(), 3 * kBytes);
    ++made_room;
  }
  EXPECT_GT(made_room, 50);
}

TEST_F(AlgorithmMovesTest, NothingLeavesWhereThereIsRoom) {
  Random random(1);
  for (int i = 0; i < 100; ++i) {
    moves_.change_algorithms({away_, least_, load(), 7 * kBytes}, random);
    EXPECT_THAT(room_.move().gaps, IsEmpty());
  }
}

TEST_F(AlgorithmMovesTest, WhatThenFitsComesBack) {
  for (const GapId g : movable_) away_[at(g)] = kCopied;
  std::vector<std::int32_t> fast = least_;
  fast[at(kMiddle)] = 1;
  Random random(1);
  int came_back = 0;
  for (int i = 0; i < 100; ++i) {
    moves_.change_algorithms({away_, fast, load(), 3 * kBytes}, random);
    EXPECT_EQ(room_.move().algorithms.front(), std::pair(kMiddle, 0));
    EXPECT_LE(load_after(), 3 * kBytes);
    came_back += room_.move().gaps.empty() ? 0 : 1;
  }
  EXPECT_GT(came_back, 50);
}

TEST_F(AlgorithmMovesTest, AGapGivesItsRoomToTheOpsItSpansAndTakesItBack) {
  moves_.change_gap({away_, least_, load(), 6 * kBytes}, movable_.front(), kCopied);
  ASSERT_EQ(room_.move().algorithms.size(), 1U);
  EXPECT_EQ(room_.move().algorithms.front(), std::pair(kMiddle, 1));
  // As much as the other algorithm needs was free before: that is no matter of this gap.
  moves_.change_gap({away_, least_, load(), 7 * kBytes}, movable_.front(), kCopied);
  EXPECT_THAT(room_.move().algorithms, IsEmpty());

  away_[at(movable_.front())] = kCopied;
  std::vector<std::int32_t> fast = least_;
  fast[at(kMiddle)] = 1;
  moves_.change_gap({away_, fast, load(), 6 * kBytes}, movable_.front(), kStays);
  ASSERT_EQ(room_.move().algorithms.size(), 1U);
  EXPECT_EQ(room_.move().algorithms.front(), std::pair(kMiddle, 0));
}

}  // namespace
}  // namespace tidepool
