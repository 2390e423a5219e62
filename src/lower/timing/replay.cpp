// The long run of a list of steps that repeats.
//
// Note [Long run]. Mostly an iteration soon repeats the one before, shifted in time; then all that
// follow do. Two things take longer. A stream that is a little too slow falls behind a bit more
// each iteration, until after hundreds of them somebody waits for it; and iterations may repeat in
// groups of some. Both are found from the ends of the last iterations. Say that each step ends d
// later than p iterations ago, with a d of its own, and did so for p + 1 iterations in a row. Then
// it goes on like that as long as each step waits longest for the same ones: until an input that
// gains on the step's start, by the difference of their d, has caught up. So all windows of p
// iterations up to there are skipped at once, exactly, and what happens then is run step by step
// again. When nothing ever catches up this is the long run, and d of the compute stream over p the
// mean.
#include "lower/timing/replay.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/at.h"

namespace tidepool {
namespace {

/// Run one by one before longer periods are looked for.
constexpr int kFewIterations = 8;

constexpr Lateness lateness(const Step& /*step*/) { return {}; }
constexpr Lateness lateness(const ScheduledStep& step) { return step.late; }

template <class AnyStep>
class LongRun {
 public:
  LongRun(std::span<AnyStep> steps, StreamId compute) : steps_(steps) {
    std::array<std::int32_t, AnyStep::kStreams> last;
    last.fill(kNone);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      last[at(steps_[i].stream)] = static_cast<std::int32_t>(i);
    }
    last_compute_ = last[at(compute)];
    std::array<StepWait, AnyStep::kStreams> on_stream;
    for (std::size_t s = 0; s < on_stream.size(); ++s) on_stream[s] = {last[s], -1};
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      before_.push_back(on_stream[at(steps_[i].stream)]);
      on_stream[at(steps_[i].stream)] = {static_cast<std::int32_t>(i), 0};
    }
    for (auto& iteration : ends_) iteration.resize(steps_.size());
    rate_.resize(steps_.size());
  }

  Nanos run() {
    for (int i = 0; i < kMostIterations; ++i) {
      run_iteration();
      for (int period = 1; 2 * period < known_; ++period) {
        if (!repeats(period)) continue;
        const Nanos::rep windows = windows_left(period);
        if (windows == kForever) return finish(period);
        skip(period, windows);
        break;
      }
    }
    return finish(kMostPeriod);  // nothing repeats: the mean of the last ones
  }

 private:
  static constexpr int kMostPeriod = 16;
  static constexpr int kHistory = 2 * kMostPeriod + 1;
  static constexpr int kMostIterations = 4096;
  static constexpr Nanos::rep kForever = std::numeric_limits<Nanos::rep>::max();

  /// Ends in the iteration `ago` iterations before the last one.
  std::vector<Nanos>& ends(int ago) { return ends_[at((now_ - ago + kHistory) % kHistory)]; }

  /// Calls `visit(end, step)` for everything that a step waits for in the iteration of `ago`: the
  /// step does not start before `end`.
  template <class Visit>
  void for_each_input(std::size_t i, int ago, Visit&& visit) {
    const Lateness late = lateness(steps_[i]);
    const auto one = [&](const StepWait& wait, Nanos begins) {
      if (wait.index == kNone || (wait.iteration != 0 && ago + 1 >= known_)) return;
      visit(ends(wait.iteration == 0 ? ago : ago + 1)[at(wait.index)] + begins, at(wait.index));
    };
    one(before_[i], late.next);
    for (const StepWait& wait : steps_[i].waits) one(wait, late.woken);
  }

  void run_iteration() {
    now_ = (now_ + 1) % kHistory;
    known_ = std::min(known_ + 1, kHistory);
    std::vector<Nanos>& current = ends(0);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Nanos start = known_ == 1 ? Nanos{0} : Nanos::min();
      for_each_input(i, 0, [&](Nanos end, std::size_t) { start = std::max(start, end); });
      current[i] = start + steps_[i].duration;
    }
  }

  /// Every step ends `rate_` later than `period` iterations ago, in period + 1 iterations in a row.
  bool repeats(int period) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      rate_[i] = ends(0)[i] - ends(period)[i];
      for (int ago = 1; ago <= period; ++ago) {
        if (ends(ago)[i] - ends(ago + period)[i] != rate_[i]) return false;
      }
    }
    return true;
  }

  /// For how many more windows every step waits longest for what it waits for now.
  Nanos::rep windows_left(int period) {
    Nanos::rep windows = kForever;
    for (int ago = 0; ago < period; ++ago) {
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        const Nanos start = ends(ago)[i] - steps_[i].duration;
        for_each_input(i, ago, [&](Nanos end, std::size_t input) {
          if (rate_[input] <= rate_[i]) return;
          windows = std::min(windows, (start - end) / (rate_[input] - rate_[i]));
        });
      }
    }
    return windows;
  }

  /// Times stay relative to the compute stream, so that they do not grow.
  void skip(int period, Nanos::rep windows) {
    const Nanos pace = last_compute_ == kNone ? Nanos{0} : rate_[at(last_compute_)];
    Nanos::rep most = 1;
    for (const Nanos rate : rate_) most = std::max(most, std::abs((rate - pace).count()));
    windows = std::min(windows, (kForever >> 3) / most);
    if (windows == 0) return;
    for (int ago = 0; ago <= 2 * period; ++ago) {
      for (std::size_t i = 0; i < steps_.size(); ++i) ends(ago)[i] += windows * (rate_[i] - pace);
    }
    known_ = 2 * period + 1;
  }

  Nanos finish(int period) {
    if (last_compute_ == kNone) return Nanos{0};
    const std::size_t c = at(last_compute_);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      steps_[i].end = ends(0)[i] - ends(1)[c];
      steps_[i].start = steps_[i].end - steps_[i].duration;
    }
    const int back = std::min(period, known_ - 1);
    return (ends(0)[c] - ends(back)[c] + Nanos{back / 2}) / back;
  }

  std::span<AnyStep> steps_;
  std::int32_t last_compute_ = kNone;
  std::vector<StepWait> before_;                   ///< per step: the one before it on its stream
  std::array<std::vector<Nanos>, kHistory> ends_;  ///< a ring of iterations
  int now_ = 0;
  int known_ = 0;            ///< iterations in the ring
  std::vector<Nanos> rate_;  ///< per step: d of the note
};

template <class AnyStep>
Nanos replay_any(std::span<AnyStep> steps, StreamId compute, ReplayScratch& scratch) {
  scratch.current_end.assign(steps.size(), Nanos{0});
  scratch.previous_end.assign(steps.size(), Nanos{0});
  std::array<Nanos, AnyStep::kStreams> ready{};
  Nanos previous_base{0};
  for (int iteration = 0; iteration < kFewIterations; ++iteration) {
    const Nanos base = ready[at(compute)];
    bool steady = iteration > 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      AnyStep& step = steps[i];
      const Lateness late = lateness(step);
      Nanos start = ready[at(step.stream)] + late.next;
      for (const StepWait& wait : step.waits) {
        if (wait.index == kNone) continue;
        if (wait.iteration == 0) {
          start = std::max(start, scratch.current_end[at(wait.index)] + late.woken);
        } else if (iteration > 0) {
          start = std::max(start, scratch.previous_end[at(wait.index)] + late.woken);
        }
      }
      const Nanos end = start + step.duration;
      ready[at(step.stream)] = end;
      steady = steady && end - base == scratch.previous_end[i] - previous_base;
      scratch.current_end[i] = end;
      step.start = start - base;
      step.end = end - base;
    }
    if (steady) return ready[at(compute)] - base;
    previous_base = base;
    std::swap(scratch.current_end, scratch.previous_end);
  }
  return LongRun<AnyStep>(steps, compute).run();
}

}  // namespace

Nanos replay(std::span<Step> steps, StreamId compute, ReplayScratch& scratch) {
  return replay_any(steps, compute, scratch);
}

Nanos replay(std::span<ScheduledStep> steps, StreamId compute, ReplayScratch& scratch) {
  return replay_any(steps, compute, scratch);
}

}  // namespace tidepool
