#pragma once

// Bytes that stay taken behind their last use, since `Tensor::released_at` names a later op.

#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "schedule/schedule.h"

namespace tidepool {

/// The bytes of `placement` are taken until steady instruction `until` has ended.
struct Release {
  PlacementId placement = kNone;
  std::int32_t until = kNone;
};

/// Of the tensors whose bytes are released behind their last op: where that op has them, until the
/// first run of the op that `released_at` names.
std::vector<Release> releases(const Program& program, const Plan& plan);

}  // namespace tidepool
