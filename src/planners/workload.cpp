#include "planners/workload.h"

#include <fmt/format.h>

namespace tidepool {

Result<const Program*> FixedWorkload::program(std::int64_t sub_batch) {
  if (sub_batch != program_.sub_batch) {
    return fail(ErrorCode::usage,
                fmt::format("workload '{}' has one size, rounds of {} samples, not {}",
                            program_.name, program_.sub_batch, sub_batch));
  }
  return &program_;
}

}  // namespace tidepool
