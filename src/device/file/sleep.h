#pragma once

#include <cerrno>
#include <chrono>
#include <ctime>

#include "base/time.h"

namespace tidepool {

/// Blocks the caller; signals do not end it.
inline void sleep_until(std::chrono::steady_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  timespec ts{};
  ts.tv_sec = static_cast<time_t>(seconds.count());
  ts.tv_nsec = static_cast<long>(std::chrono::duration_cast<Nanos>(since - seconds).count());
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, nullptr) == EINTR) {
  }
}

}  // namespace tidepool
