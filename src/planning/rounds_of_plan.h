// What is known of a plan's rounds, for reports.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace tidepool {

struct RoundsOfPlan {
  std::int64_t sub_batch = 0;
  std::int64_t rounds = 1;
  bool chosen = false;           ///< by the planner
  bool statistics = false;       ///< batch norm takes its statistics over a round, or a part
  std::optional<Nanos> whole{};  ///< the whole batch at once without a budget, as predicted
  bool kept_whole = false;       ///< to be chosen, but smaller ones would change batch norm
  bool of_part = false;          ///< of one device's part of the batch, where there are several
};

}  // namespace tidepool
