// SharedBus: the bandwidth that copies on several threads share. They take turns piece by piece, so
// that those that are active at the same time get the same part of it.
#pragma once

#include <chrono>
#include <mutex>

#include "base/bytes.h"
#include "base/time.h"

namespace tidepool {

class SharedBus {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// 0: no limit.
  explicit SharedBus(double bytes_per_second) : speed_(bytes_per_second) {}

  /// Takes the next turn for so many bytes from `now` on. Returns when they are over the bus: the
  /// copy is not to go on before. Any thread.
  Time take(Bytes bytes, Time now) {
    if (speed_ <= 0) return now;
    return take_time(from_seconds(static_cast<double>(bytes) / speed_), now);
  }
  /// The same for what keeps the bus busy so long, whatever its speed.
  Time take_time(Nanos time, Time now) {
    const std::lock_guard lock(mutex_);
    free_at_ = std::max(free_at_, now) + time;
    return free_at_;
  }

 private:
  double speed_;
  std::mutex mutex_;
  Time free_at_{};
};

}  // namespace tidepool
