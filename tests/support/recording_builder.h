// Recordings for tests: written by hand, or random ones that repeat.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "trace/recording.h"

namespace tidepool::testing {

/// Events one after the other, a microsecond apart.
class RecordingBuilder {
 public:
  RecordingBuilder() {
    recording_.name = "test";
    recording_.has_times = true;
  }
  BlockId block(Bytes bytes) {
    recording_.blocks.push_back({bytes, {}, {}});
    return static_cast<BlockId>(recording_.blocks.size()) - 1;
  }
  BlockId malloc(Bytes bytes) {
    const BlockId b = block(bytes);
    event(EventKind::malloc, b);
    return b;
  }
  RecordingBuilder& event(EventKind kind, BlockId b, std::int32_t op = kNone) {
    recording_.events.push_back({kind, b, now_, op});
    now_ += step;
    return *this;
  }
  RecordingBuilder& read(BlockId b) { return event(EventKind::read, b); }
  RecordingBuilder& write(BlockId b) { return event(EventKind::write, b); }
  RecordingBuilder& use(BlockId b) { return event(EventKind::use, b); }
  RecordingBuilder& free(BlockId b) { return event(EventKind::free, b); }
  Recording& recording() { return recording_; }

  Nanos step{1000};

 private:
  Recording recording_;
  Nanos now_{0};
};

/// A random training: persistent blocks, blocks of one iteration, blocks that live into the next
/// ones. Every malloc is followed by a write and every free follows a read of its block, so that a
/// program has the recording's peak exactly.
class RandomTraining {
 public:
  explicit RandomTraining(std::uint64_t seed) : random_(seed) {
    const std::size_t persistent = 1 + random_.below(4);
    for (std::size_t i = 0; i < persistent; ++i) {
      weights_.push_back(tape.block(static_cast<Bytes>(1 + random_.below(1000))));
    }
    const std::size_t steps = 8 + random_.below(24);
    for (std::size_t i = 0; i < steps; ++i) {
      Step step;
      step.bytes = static_cast<Bytes>(1 + random_.below(100'000));
      step.weight = weights_[random_.below(weights_.size())];
      step.updates = random_.below(3) == 0;
      // Freed some steps later: mostly in the same iteration, sometimes one or two later.
      const std::uint64_t reach = random_.below(4) == 0 ? 2 * steps + 2 : steps - i;
      step.freed_after = static_cast<std::int64_t>(random_.below(reach));
      step.read_after = static_cast<std::int64_t>(random_.below(steps));
      steps_.push_back(step);
    }
  }

  /// Blocks of earlier iterations are freed as if those had been recorded.
  void iteration() {
    for (std::size_t i = 0; i < steps_.size(); ++i, ++now_) {
      const Step& step = steps_[i];
      const BlockId b = tape.malloc(step.bytes);
      tape.write(b);
      live_.push_back({b, now_, now_ + step.freed_after, now_ + step.read_after});
      step.updates ? tape.write(step.weight) : tape.read(step.weight);
      std::erase_if(live_, [&](const Live& x) {
        if (x.read_at == now_ && x.free_at > now_) tape.read(x.block);
        if (x.free_at != now_) return false;
        tape.read(x.block).free(x.block);
        return true;
      });
    }
  }

  RecordingBuilder tape;

 private:
  struct Step {
    Bytes bytes = 0;
    BlockId weight = kNone;
    bool updates = false;
    std::int64_t freed_after = 0;  ///< in steps
    std::int64_t read_after = 0;
  };
  struct Live {
    BlockId block = kNone;
    std::int64_t born = 0;
    std::int64_t free_at = 0;
    std::int64_t read_at = 0;
  };

  Random random_;
  std::vector<BlockId> weights_;
  std::vector<Step> steps_;
  std::vector<Live> live_;
  std::int64_t now_ = 0;
};

}  // namespace tidepool::testing
