#include "check/happens_before.h"

#include <algorithm>

namespace tidepool::checking {

HappensBefore::HappensBefore(const Schedule& schedule, std::size_t streams, int iterations)
    : schedule_(schedule),
      streams_(streams),
      sequence_(schedule.instructions.size() * static_cast<std::size_t>(iterations)),
      clocks_(sequence_.size() * streams, 0) {
  const std::size_t n = schedule.instructions.size();
  std::vector<std::int64_t> issued(streams, 0);
  std::vector<std::int64_t> last(streams, -1);
  for (std::size_t e = 0; e < sequence_.size(); ++e) {
    const std::size_t i = e % n;
    const std::size_t s = stream(e);
    if (last[s] >= 0) learn(e, static_cast<std::size_t>(last[s]));
    for (const Wait& w : schedule.instructions[i].waits) {
      const auto index = static_cast<std::size_t>(w.index);
      if (w.iteration == 0) {
        learn(e, e - i + index);
      } else if (e >= n) {
        learn(e, e - i - n + index);
      }
    }
    last[s] = static_cast<std::int64_t>(e);
    sequence_[e] = ++issued[s];
  }
}

void HappensBefore::learn(std::size_t event, std::size_t earlier) {
  const std::size_t clock = event * streams_;
  for (std::size_t s = 0; s < streams_; ++s) {
    clocks_[clock + s] = std::max(clocks_[clock + s], clocks_[earlier * streams_ + s]);
  }
  auto& own = clocks_[clock + stream(earlier)];
  own = std::max(own, sequence_[earlier]);
}

}  // namespace tidepool::checking
