#include "lower/order.h"

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

bool may_share_by_order(const HappensBefore& order, const Instance& a, const Instance& b) {
  if (a.always || b.always || a.space != b.space) return a.space != b.space;
  const std::int32_t a_end = a.crosses ? 1 : 0;
  const std::int32_t b_end = b.crosses ? 1 : 0;
  for (std::int32_t shift = -1; shift <= 1; ++shift) {  // b's iteration relative to a's
    const bool a_first = order.ordered(a.end, a_end - shift, b.begin);
    const bool b_first = order.ordered(b.end, b_end + shift, a.begin);
    if (!a_first && !b_first) return false;
  }
  return true;
}

bool may_share_in_time(std::span<const Step> steps, std::span<const Nanos> starts,
                       Nanos iteration_time, const Instance& a, const Instance& b) {
  if (a.always || b.always || a.space != b.space) return a.space != b.space;
  const auto length = static_cast<std::int32_t>(steps.size());
  const auto over_before = [&](const Instance& first, std::int32_t shift, const Instance& next) {
    const Step& end = steps[static_cast<std::size_t>(first.end)];
    const std::int32_t iteration = (first.crosses ? 1 : 0) + shift;
    return first.end + iteration * length < next.begin &&
           end.end + iteration * iteration_time <= starts[static_cast<std::size_t>(next.begin)];
  };
  for (std::int32_t shift = -1; shift <= 1; ++shift) {  // b's iteration relative to a's
    if (!over_before(a, -shift, b) && !over_before(b, shift, a)) return false;
  }
  return true;
}

bool may_share_with_waits(std::int32_t length, const Instance& a, const Instance& b) {
  if (a.always || b.always || a.space != b.space) return a.space != b.space;
  const std::int32_t a_end = a.end + (a.crosses ? length : 0);
  const std::int32_t b_end = b.end + (b.crosses ? length : 0);
  for (std::int32_t shift = -1; shift <= 1; ++shift) {
    const bool overlap = a.begin <= b_end + shift * length && b.begin + shift * length <= a_end;
    if (overlap) return false;
  }
  return true;
}

}  // namespace tidepool
