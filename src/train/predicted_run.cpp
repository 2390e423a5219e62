#include "train/predicted_run.h"

#include <algorithm>
#include <vector>

#include "base/median.h"
#include "sim/simulate.h"

namespace tidepool {

Nanos predicted_median(const Job& job, const Preparation& start, std::int64_t first,
                       std::int64_t count) {
  constexpr std::int64_t kFewest = 2, kMost = 200;
  if (job.whole().survival.empty()) return start.iteration_time();
  const auto& planned_for = start.plan.profile;
  const Program& of_one = planned_for ? planned_for->program : job.program();
  const Simulation run =
      simulate(start.parallel ? start.parallel->program : of_one, start.running(),
               start.running_on(), static_cast<int>(std::clamp(count, kFewest, kMost)),
               [&](std::int64_t i) { return job.branches_of(first + i); });
  std::vector<Nanos> times;
  for (std::size_t i = 1; i < run.iteration_end.size(); ++i) {
    times.push_back(run.iteration_end[i] - run.iteration_end[i - 1]);
  }
  return median(times);
}

}  // namespace tidepool
