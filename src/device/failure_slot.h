// The first error of work that runs on threads of the device's own, kept until its user asks.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <string>

#include "device/device.h"

namespace tidepool {

/// Any thread may call anything.
class FailureSlot {
 public:
  /// Keeps the first message.
  void set(std::string message);
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Throws DeviceError when there is a message.
  void rethrow() const;

  /// Calls `work` and keeps what it throws. Work after a failure is skipped: it would run on wrong
  /// data.
  template <class F>
  void run(const F& work, const char* unknown_exception) {
    if (failed()) return;
    try {
      work();
    } catch (const std::exception& error) {
      set(error.what());
    } catch (...) {
      set(unknown_exception);
    }
  }

 private:
  mutable std::mutex mutex_;
  std::string message_;
  std::atomic<bool> failed_{false};
};

}  // namespace tidepool
