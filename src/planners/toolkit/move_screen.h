// Which moves of a search are worth an evaluation: by prices, which cost next to nothing.
//
// Note [Screened moves]. Under the prices of a limit (price_search.h) each gap says what it saves
// by staying, by copies and by being made again, all others as they are. What a move is worth by
// that is only a guess, as prices are those of small changes; but of many moves the one that
// promises most is better than any. How much is promise enough follows what has been seen: one move
// in kConsidered is.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "planners/toolkit/price_search.h"

namespace tidepool {

class MoveScreen {
 public:
  static constexpr int kConsidered = 10;
  static constexpr int kMostTries = 4 * kConsidered;  ///< for a move that promises something
  static constexpr int kChangesALook = 64;

  /// Both must outlive the screen; the prices are those of the last run.
  explicit MoveScreen(PriceSearch& prices) : prices_(prices) {}

  /// What gaps save beside this state, from now on.
  void look(const AwayGaps& away) { prices_.look_at(away); }
  /// A move from what was (per gap, each at most once) to what is.
  [[nodiscard]] bool promises(std::span<const std::pair<std::size_t, char>> before,
                              const AwayGaps& now);

 private:
  PriceSearch& prices_;
  double enough_ = 0;  ///< a move that loses no more is worth an evaluation
  double usual_ = 0;   ///< what moves gain or lose
};

}  // namespace tidepool
