// EventClock: tells when timed events happened on the host's steady clock.
#pragma once

#include <cuda_runtime_api.h>

#include <array>

#include "base/time.h"

namespace tidepool::cuda {

/// CUDA gives the time between two events as a float of milliseconds, so the event that times refer
/// to moves on every few seconds.
class EventClock {
 public:
  EventClock() = default;
  EventClock(const EventClock&) = delete;
  EventClock& operator=(const EventClock&) = delete;
  ~EventClock();

  /// On the current device, before anything is asked.
  void open();
  /// `event` has completed.
  Nanos time_of(cudaEvent_t event);

  static Nanos host_now();

 private:
  struct Anchor {
    cudaEvent_t event = nullptr;
    Nanos time{};
  };

  void mark(const Anchor& anchor);

  cudaStream_t stream_ = nullptr;
  std::array<Anchor, 2> anchors_;  ///< the older first
};

}  // namespace tidepool::cuda
