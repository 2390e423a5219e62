#include "planners/toolkit/unstalled_starts.h"

#include "base/at.h"

namespace tidepool {

std::vector<Nanos> unstalled_starts(const Program& program,
                                    std::span<const std::int32_t> algorithms) {
  std::vector<Nanos> starts{Nanos{0}};
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const bool on_device = op.place == OpPlace::device;
    starts.push_back(starts.back() +
                     (on_device ? op.algorithms[at(algorithms[i])].time : Nanos{0}));
  }
  return starts;
}

Nanos idle_time(const Gap& gap, std::span<const Nanos> starts) {
  const Nanos idle = starts[at(gap.to)] - starts[at(gap.from) + 1];
  return gap.wraps ? idle + starts.back() : idle;
}

}  // namespace tidepool
