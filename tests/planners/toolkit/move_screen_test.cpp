#include "planners/toolkit/move_screen.h"

#include <gtest/gtest.h>

#include "base/at.h"
#include "ir/load_profile.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;
using testing::ProgramBuilder;

constexpr Nanos kScreenedOp{100'000};
constexpr Bytes kScreenedLayer = 40'000;
constexpr int kScreenedLayers = 12;

/// Forward writes one tensor a layer, backward reads them in reverse: the load is a triangle.
class ScreenedLayers : public ::testing::Test {
 protected:
  ScreenedLayers()
      : program_(layers()),
        machine_(testing::byte_a_nanosecond()),
        lowering_(program_, machine_),
        prices_(lowering_, least_workspace_algorithms(program_), {}),
        screen_(prices_) {
    prices_.run(kLimit, {});
    screen_.look(kept_);
  }

  static Program layers() {
    ProgramBuilder b;
    std::vector<TensorId> x;
    for (int i = 0; i < kScreenedLayers; ++i)
      x.push_back(b.tensor("x" + std::to_string(i), kScreenedLayer));
    for (int i = 0; i < kScreenedLayers; ++i)
      b.device("f" + std::to_string(i), {{x[i], write}}, kScreenedOp);
    for (int i = kScreenedLayers; i-- > 0;)
      b.device("b" + std::to_string(i), {{x[i], read}}, kScreenedOp);
    return b.build();
  }

  /// Whether it promises something that this gap leaves a state in which all stay; asked often, by
  /// turns with another one.
  int promises(std::size_t gap, std::size_t beside) {
    int count = 0;
    for (int i = 0; i < kAsked; ++i) {
      AwayGaps now = kept_;
      now[gap] = kCopied;
      count += screen_.promises(std::vector{std::pair{gap, kStays}}, now) ? 1 : 0;
      now = kept_;
      now[beside] = kCopied;
      std::ignore = screen_.promises(std::vector{std::pair{beside, kStays}}, now);
    }
    return count;
  }

  static constexpr Bytes kLimit = 6 * kScreenedLayer;
  static constexpr int kAsked = 200;
  Program program_;
  Machine machine_;
  Lowering lowering_;
  PriceSearch prices_;
  MoveScreen screen_;
  AwayGaps kept_ = AwayGaps(kScreenedLayers, kStays);
};

/// The first layer's gap spans all of the peak, the last one's nothing.
TEST_F(ScreenedLayers, WhatFreesTheDearBytesPromisesMoreThanWhatFreesNone) {
  EXPECT_GT(prices_.saved(0, kCopied), prices_.saved(kScreenedLayers - 1, kCopied));
  EXPECT_GT(promises(0, kScreenedLayers - 1), promises(kScreenedLayers - 1, 0));
}

TEST_F(ScreenedLayers, OneMoveInSomeIsPromiseEnough) {
  Random random(1);
  int promising = 0;
  constexpr int kMoves = 5'000;
  for (int i = 0; i < kMoves; ++i) {
    const std::size_t gap = random.below(kScreenedLayers);
    AwayGaps now = kept_;
    now[gap] = kCopied;
    promising += screen_.promises(std::vector{std::pair{gap, kStays}}, now) ? 1 : 0;
  }
  EXPECT_GT(promising, kMoves / MoveScreen::kConsidered / 3);
  EXPECT_LT(promising, kMoves / MoveScreen::kConsidered * 3);
}

/// Nothing is lost by what is as it was.
TEST_F(ScreenedLayers, StayingSavesNothing) {
  for (std::size_t gap = 0; gap < kScreenedLayers; ++gap) EXPECT_EQ(prices_.saved(gap, kStays), 0);
}

}  // namespace
}  // namespace tidepool
