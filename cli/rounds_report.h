// What commands say of an iteration's rounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "base/time.h"

namespace tidepool::cli {

struct RoundsReport {
  std::int64_t sub_batch = 0;
  std::int64_t rounds = 1;
  bool chosen = false;           ///< by the planner
  bool statistics = false;       ///< batch norm takes its statistics over a round, or a part
  std::optional<Nanos> whole{};  ///< the whole batch at once without a budget, as predicted
  bool kept_whole = false;       ///< to be chosen, but smaller ones would change batch norm
  bool of_part = false;          ///< of one device's part of the batch, where there are several

  void add_to(Json& out) const;
  /// Empty where the batch runs at once and nobody asked for a choice.
  [[nodiscard]] std::string text() const;
  /// Empty where rounds leave training as it is.
  [[nodiscard]] std::string warning() const;
};

/// What algorithms that a planner may choose (--algorithms auto) would save of the time without a
/// budget; empty where that is less than 1 %, or nothing.
std::string worth_of_choosing(Nanos unlimited, Nanos fastest);

}  // namespace tidepool::cli
