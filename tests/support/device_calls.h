// What tests of every device call it with.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include "device/device.h"

namespace tidepool::testing {

constexpr StreamId kCompute = 0, kOut = 1, kIn = 2, kHost = 3;

/// One device, its host, and the streams above.
inline DeviceConfig four_streams(Bytes device = kMiB, Bytes host = kMiB) {
  return {
      device, host, {StreamKind::compute, StreamKind::copy, StreamKind::copy, StreamKind::host}};
}

inline Work call(void (*run)(void*, std::int64_t, NativeStream), void* context = nullptr,
                 std::int64_t argument = 0) {
  Work work;
  work.run = run;
  work.context = context;
  work.argument = argument;
  return work;
}

inline void sleep_ms(std::int64_t n) { std::this_thread::sleep_for(std::chrono::milliseconds(n)); }

}  // namespace tidepool::testing
