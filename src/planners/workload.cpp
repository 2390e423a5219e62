#include "planners/workload.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidepool {

Result<const Program*> FixedWorkload::program(std::int64_t sub_batch) {
  if (sub_batch != program_.sub_batch) {
    return fail(ErrorCode::usage,
                fmt::format("workload '{}' has one size, rounds of {} samples, not {}",
                            program_.name, program_.sub_batch, sub_batch));
  }
  return &program_;
}

namespace {

Result<void> check_offer(const std::vector<std::int64_t>& sizes, std::int64_t sub_batch) {
  if (std::ranges::find(sizes, sub_batch) != sizes.end()) return {};
  return fail(ErrorCode::usage, fmt::format("rounds of {} samples are not on offer, only of {}",
                                            sub_batch, fmt::join(sizes, ", ")));
}

}  // namespace

Result<const Program*> RoundsWorkload::program(std::int64_t sub_batch) {
  if (const Program* made = known(sub_batch)) return made;
  if (auto offered = check_offer(sizes_, sub_batch); !offered) return fail(offered.error());
  auto made = make_(sub_batch);
  if (!made) return fail(made.error());
  return &(made_[sub_batch] = std::move(*made));
}

const Program* RoundsWorkload::known(std::int64_t sub_batch) const {
  const auto made = made_.find(sub_batch);
  return made == made_.end() ? nullptr : &made->second;
}

Result<const Program*> RestrictedWorkload::program(std::int64_t sub_batch) {
  if (auto offered = check_offer(sizes_, sub_batch); !offered) return fail(offered.error());
  return of_->program(sub_batch);
}

}  // namespace tidepool
