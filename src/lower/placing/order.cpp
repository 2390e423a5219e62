#include "lower/placing/order.h"

#include <algorithm>
#include <limits>

namespace tidepool {

HappensBefore::HappensBefore(std::span<const Step> steps)
    : length_(static_cast<std::int32_t>(steps.size())) {
  constexpr int kIterations = 3;
  constexpr std::int32_t kNothing = std::numeric_limits<std::int32_t>::min() / 2;
  using Clock = std::array<std::int32_t, kMaxStreams>;
  const auto merge = [](Clock& into, const Clock& from, std::int32_t shift) {
    for (std::size_t s = 0; s < kMaxStreams; ++s) into[s] = std::max(into[s], from[s] + shift);
  };
  for (const Step& step : steps) stream_.push_back(step.stream);
  Clock nothing;
  nothing.fill(kNothing);
  knows_.assign(steps.size(), nothing);
  // After an iteration, what the previous one knew is shifted by one length.
  std::vector<Clock> previous;
  std::array<std::int32_t, kMaxStreams> last_on_stream;
  last_on_stream.fill(kNone);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    previous = knows_;
    std::array<std::int32_t, kMaxStreams> last = last_on_stream;
    std::array<bool, kMaxStreams> last_is_current{};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Clock clock = nothing;
      const auto learn = [&](std::int32_t index, bool current) {
        const auto x = static_cast<std::size_t>(index);
        const std::int32_t shift = current ? 0 : -length_;
        merge(clock, current ? knows_[x] : previous[x], shift);
        auto& own = clock[static_cast<std::size_t>(stream_[x])];
        own = std::max(own, index + shift);
      };
      const auto stream = static_cast<std::size_t>(steps[i].stream);
      if (last[stream] != kNone) learn(last[stream], last_is_current[stream]);
      for (const StepWait& wait : steps[i].waits) {
        if (wait.index == kNone) continue;
        if (wait.iteration == 0) {
          learn(wait.index, true);
        } else if (iteration > 0) {
          learn(wait.index, false);
        }
      }
      knows_[i] = clock;
      last[stream] = static_cast<std::int32_t>(i);
      last_is_current[stream] = true;
    }
    last_on_stream = last;
  }
}

}  // namespace tidepool
