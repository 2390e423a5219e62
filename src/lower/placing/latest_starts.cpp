#include "lower/placing/latest_starts.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/at.h"

namespace tidepool {
namespace {

/// The ops of each stream in the order of the list, in which their ends ascend.
class ListedOps {
 public:
  explicit ListedOps(std::span<const Step> steps)
      : steps_(steps), none_(static_cast<std::int32_t>(steps.size())) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind != StepKind::op) continue;
      on_stream_[at(steps[i].stream)].push_back(static_cast<std::int32_t>(i));
    }
  }

  /// The first from `position` on that is not over at `time`; the length where all are.
  [[nodiscard]] std::int32_t first_running_at(Nanos time, std::int32_t position) const {
    std::int32_t first = none_;
    for (const std::vector<std::int32_t>& list : on_stream_) {
      const auto running = std::partition_point(
          list.begin(), list.end(), [&](std::int32_t op) { return steps_[at(op)].end <= time; });
      const auto found = std::lower_bound(running, list.end(), position);
      if (found != list.end()) first = std::min(first, *found);
    }
    return first;
  }

 private:
  std::span<const Step> steps_;
  std::int32_t none_;
  std::array<std::vector<std::int32_t>, kMaxStreams> on_stream_;
};

}  // namespace

std::vector<Nanos> latest_starts(std::span<const Step> steps, Nanos iteration_time) {
  // The next iteration's starts constrain this one's, so the passes go backwards until they agree:
  // twice where no delay reaches over more than one boundary.
  constexpr int kMaxPasses = 8;
  std::vector<Nanos> latest(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    latest[i] = steps[i].kind == StepKind::copy_in ? Nanos::max() : steps[i].start;
  }
  std::array<std::int32_t, kMaxStreams> first_on_stream;
  first_on_stream.fill(kNone);
  for (std::size_t i = steps.size(); i-- > 0;) {
    first_on_stream[at(steps[i].stream)] = static_cast<std::int32_t>(i);
  }
  bool changed = true;
  for (int pass = 0; pass < kMaxPasses && changed; ++pass) {
    changed = false;
    const auto end_by = [&](std::int32_t step, Nanos time) {
      if (step == kNone || steps[at(step)].kind != StepKind::copy_in) return;
      const Nanos start = time - steps[at(step)].duration;
      if (start >= latest[at(step)]) return;
      latest[at(step)] = start;
      changed = true;
    };
    std::array<std::int32_t, kMaxStreams> next = first_on_stream;
    std::array<Nanos, kMaxStreams> later;
    later.fill(iteration_time);
    for (std::size_t i = steps.size(); i-- > 0;) {
      // The step behind this one on its stream, in this iteration or the next.
      const std::size_t stream = at(steps[i].stream);
      const Nanos next_start = latest[at(next[stream])];
      if (next_start != Nanos::max()) {
        end_by(static_cast<std::int32_t>(i), next_start + later[stream]);
      }
      next[stream] = static_cast<std::int32_t>(i);
      later[stream] = Nanos{0};
      if (latest[i] == Nanos::max()) continue;  // nothing known yet waits for it
      for (const StepWait& wait : steps[i].waits) {
        if (wait.index == kNone) continue;
        end_by(wait.index, latest[i] + (wait.iteration == 0 ? Nanos{0} : iteration_time));
      }
    }
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (changed || latest[i] == Nanos::max()) latest[i] = steps[i].start;
  }
  return latest;
}

void list_copies_in_late(std::vector<Step>& steps, std::vector<Nanos>& latest) {
  const auto n = static_cast<std::int32_t>(steps.size());
  // Per step: it has to be listed before this one. From the end, so that what is known of those
  // behind is final.
  std::vector<std::int32_t> before(steps.size(), n);
  std::array<std::int32_t, kMaxStreams> next;
  next.fill(n);
  std::vector<std::pair<std::int32_t, std::int32_t>> order;  // (listed before, old position)
  const ListedOps ops(steps);
  for (std::int32_t i = n; i-- > 0;) {
    const Step& step = steps[at(i)];
    std::int32_t place = i;
    if (step.kind == StepKind::copy_in) {
      const std::int32_t limit = std::min(before[at(i)], next[at(step.stream)]);
      ++place;
      place = std::min(limit, ops.first_running_at(latest[at(i)], place));
    }
    next[at(step.stream)] = std::min(next[at(step.stream)], place);
    for (const StepWait& wait : step.waits) {
      if (wait.index == kNone || wait.iteration != 0) continue;
      before[at(wait.index)] = std::min(before[at(wait.index)], place);
    }
    order.emplace_back(place, i);
  }
  // Copies in that are listed before the same step keep their order, and go before it.
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    const auto key = [&](const auto& x) {
      return std::tuple(x.first, steps[at(x.second)].kind != StepKind::copy_in, x.second);
    };
    return key(a) < key(b);
  });
  std::vector<std::int32_t> position(steps.size());
  for (std::int32_t k = 0; k < n; ++k) position[at(order[at(k)].second)] = k;
  std::vector<Step> listed(steps.size());
  std::vector<Nanos> listed_latest(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Step& step = listed[at(position[i])] = steps[i];
    listed_latest[at(position[i])] = latest[i];
    for (StepWait& wait : step.waits) {
      if (wait.index != kNone) wait.index = position[at(wait.index)];
    }
  }
  steps = std::move(listed);
  latest = std::move(listed_latest);
}

}  // namespace tidepool
