#include "runtime/observe.h"

#include <utility>

#include "base/median.h"

namespace tidepool {

Observation observe(const Plan& plan, Strategy strategy,
                    const std::vector<std::vector<OpTiming>>& timings) {
  const auto& list = plan.steady.instructions;
  std::vector<std::vector<Nanos>> durations(list.size());
  std::vector<std::vector<Nanos>> stalls(list.size());
  // Per stream: when it was last busy, or kNotMeasured.
  std::vector<Nanos> busy_until(plan.streams.size(), Observation::kNotMeasured);
  for (const auto& iteration : timings) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const OpTiming& t = iteration[i];
      const bool ran = t.end > Nanos{0};
      if (!ran) continue;
      Nanos& until = busy_until[static_cast<std::size_t>(list[i].stream)];
      durations[i].push_back(t.end - t.start);
      if (until != Observation::kNotMeasured) stalls[i].push_back(t.start - until);
      until = t.end;
    }
  }
  Observation observation;
  observation.strategy = std::move(strategy);
  const auto of = [](std::vector<Nanos>& samples) {
    return samples.empty() ? Observation::kNotMeasured : median(samples);
  };
  for (std::vector<Nanos>& samples : durations) observation.durations.push_back(of(samples));
  for (std::vector<Nanos>& samples : stalls) observation.stalls.push_back(of(samples));
  return observation;
}

}  // namespace tidepool
