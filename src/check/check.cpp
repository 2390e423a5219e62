#include "check/check.h"

#include <limits>

#include "check/homes.h"
#include "check/placements.h"
#include "check/races.h"
#include "check/shape.h"
#include "check/values.h"

namespace tidepool {

CheckLimits::CheckLimits(Bytes device, Bytes host, Bytes alignment, bool duplex)
    : spaces{{SpaceKind::device, device, alignment},
             {SpaceKind::host, host == 0 ? std::numeric_limits<Bytes>::max() : host, alignment}},
      links{{0, 1, 0}, {1, 0, duplex ? 1 : 0}} {}

Result<void> check(const Program& program, const Plan& plan, const CheckLimits& limits) {
  if (auto valid = validate(program); !valid) return valid;
  try {
    checking::Subject subject(program, plan);
    checking::check_shape(subject, limits);
    const std::vector<std::int32_t> algorithms = checking::check_counts(subject);
    subject.find_released();
    checking::check_races(subject);
    checking::check_values(subject, algorithms);
    checking::check_placements(subject);
    checking::check_homes(subject);
  } catch (const checking::Refuted& counterexample) {
    return fail(ErrorCode::check_failed,
                fmt::format("the plan is wrong: {}", counterexample.what()));
  }
  return {};
}

}  // namespace tidepool
