// What a plan moves and repeats in one steady iteration.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace tidepool {

/// Bytes copied from one space to another.
struct CopiedBytes {
  SpaceId from = 0;
  SpaceId to = 0;
  Bytes bytes = 0;
  bool operator==(const CopiedBytes&) const = default;
};

struct PlanTotals {
  Bytes copied_out = 0;  ///< off a device, wherever to; results included
  Bytes copied_in = 0;   ///< to a device, wherever from; inputs included
  /// Of each pair of spaces between which something is copied, in the order of their numbers.
  std::vector<CopiedBytes> copied;
  /// Tensors that come back to a device after they left it, another device's included.
  std::int64_t swapped_tensors = 0;
  Bytes swapped_out = 0;            ///< copied off those devices of those tensors
  std::int64_t recomputed_ops = 0;  ///< runs of ops beyond one each
  Nanos compute_time{};             ///< of the ops' runs on devices
  Bytes written = 0;                ///< to files, in whole blocks
};

PlanTotals totals_of(const Program& program, const Plan& plan);

/// To files in one steady iteration, in whole blocks.
Bytes written_to_files(const Plan& plan);

/// The algorithm that each op of the program runs.
std::vector<std::int32_t> chosen_algorithms(const Program& program, const Plan& plan);

}  // namespace tidepool
