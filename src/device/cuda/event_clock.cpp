#include "device/cuda/event_clock.h"

#include <chrono>
#include <utility>

#include "device/cuda/check.h"

namespace tidepool::cuda {
namespace {

Nanos between(cudaEvent_t from, cudaEvent_t to) {
  float milliseconds = 0;
  TIDEPOOL_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, from, to));
  return Nanos{static_cast<Nanos::rep>(static_cast<double>(milliseconds) * 1e6)};
}

}  // namespace

EventClock::~EventClock() {
  for (Anchor& anchor : anchors_) {
    if (anchor.event != nullptr) (void)cudaEventDestroy(anchor.event);
  }
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

void EventClock::open() {
  TIDEPOOL_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  for (Anchor& anchor : anchors_) TIDEPOOL_CUDA_CHECK(cudaEventCreate(&anchor.event));
  mark(anchors_[0]);
  anchors_[0].time = host_now();
  mark(anchors_[1]);
  anchors_[1].time = anchors_[0].time + between(anchors_[0].event, anchors_[1].event);
}

Nanos EventClock::time_of(cudaEvent_t event) {
  // Below this a float's step is under a microsecond.
  constexpr Nanos kMove{8'000'000'000};
  const Nanos since_first = between(anchors_[0].event, event);
  const Nanos second = anchors_[1].time - anchors_[0].time;
  const Nanos time = since_first < second ? anchors_[0].time + since_first
                                          : anchors_[1].time + between(anchors_[1].event, event);
  if (time - anchors_[1].time > kMove) {
    std::swap(anchors_[0], anchors_[1]);
    mark(anchors_[1]);
    anchors_[1].time = anchors_[0].time + between(anchors_[0].event, anchors_[1].event);
  }
  return time;
}

Nanos EventClock::host_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

/// Its stream carries nothing else, so this does not wait for anybody's work.
void EventClock::mark(const Anchor& anchor) {
  TIDEPOOL_CUDA_CHECK(cudaEventRecord(anchor.event, stream_));
  TIDEPOOL_CUDA_CHECK(cudaEventSynchronize(anchor.event));
}

}  // namespace tidepool::cuda
