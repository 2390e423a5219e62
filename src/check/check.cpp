#include "check/check.h"

#include <exception>
#include <future>
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

namespace {

/// Of plans with fewer instructions the proof takes no longer than a thread is worth.
constexpr std::size_t kWorthAThread = 4'000;

/// Races have nothing to do with the rest, and are half of the work. What is wrong is told in the
/// same order by one thread and by two.
void check_well_formed(const checking::Subject& subject,
                       const std::vector<std::int32_t>& algorithms) {
  const auto check_others = [&] {
    checking::check_values(subject, algorithms);
    checking::check_placements(subject);
    checking::check_homes(subject);
  };
  if (subject.plan.steady.instructions.size() < kWorthAThread) {
    checking::check_races(subject);
    check_others();
    return;
  }
  // Where no thread can be made, `get` does the work.
  auto races = std::async(std::launch::async | std::launch::deferred,
                          [&subject] { checking::check_races(subject); });
  std::exception_ptr wrong;
  try {
    check_others();
  } catch (...) {
    wrong = std::current_exception();
  }
  races.get();
  if (wrong) std::rethrow_exception(wrong);
}

}  // namespace

Result<void> check(const Program& program, const Plan& plan, const CheckLimits& limits) {
  if (auto valid = validate(program); !valid) return valid;
  try {
    checking::Subject subject(program, plan);
    checking::check_shape(subject, limits);
    const std::vector<std::int32_t> algorithms = checking::check_counts(subject);
    subject.find_released();
    check_well_formed(subject, algorithms);
  } catch (const checking::Refuted& counterexample) {
    return fail(ErrorCode::check_failed,
                fmt::format("the plan is wrong: {}", counterexample.what()));
  }
  return {};
}

}  // namespace tidepool
