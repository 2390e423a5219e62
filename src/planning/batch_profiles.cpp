#include "planning/batch_profiles.h"

#include <algorithm>
#include <cmath>

namespace tidepool {
namespace {

bool same_algorithms(const Program& a, const Program& b) {
  return std::ranges::equal(a.ops, b.ops, [](const Op& x, const Op& y) {
    return x.name == y.name &&
           std::ranges::equal(x.algorithms, y.algorithms, {}, &Algorithm::name, &Algorithm::name);
  });
}

}  // namespace

bool estimate_times(const Program& low, const Program& high, Program& program) {
  if (!same_algorithms(low, program) || !same_algorithms(high, program)) return false;
  const double share = static_cast<double>(program.batch - low.batch) /
                       static_cast<double>(std::max<std::int64_t>(1, high.batch - low.batch));
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    for (std::size_t a = 0; a < program.ops[i].algorithms.size(); ++a) {
      const auto from = static_cast<double>(low.ops[i].algorithms[a].time.count());
      const auto to = static_cast<double>(high.ops[i].algorithms[a].time.count());
      program.ops[i].algorithms[a].time = Nanos{std::llround(from + share * (to - from))};
    }
  }
  return true;
}

Result<BatchProfiles::Obtained> BatchProfiles::profile(std::int64_t batch, bool estimate) {
  const auto known = measured_.find(batch);
  if (known != measured_.end()) return Obtained{&known->second, false};
  const auto above = measured_.upper_bound(batch);
  if (estimate && untimed_ && above != measured_.begin() && above != measured_.end()) {
    auto program = untimed_(batch);
    if (!program) return fail(program.error());
    const Profile& low = std::prev(above)->second;
    if (estimate_times(low.program, above->second.program, *program)) {
      estimate_ = {low.fingerprint, std::move(*program), low.machine};
      return Obtained{&estimate_, true};
    }
  }
  auto measured = measure_(batch);
  if (!measured) return fail(measured.error());
  return Obtained{&(measured_[batch] = std::move(*measured)), false};
}

}  // namespace tidepool
