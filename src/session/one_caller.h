// Calls from several threads, one after the other.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace tidepool {

/// A mutex that an op keeps from its begin to its end, and that knows who has it.
class OneCaller {
 public:
  void lock() {
    mutex_.lock();
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void unlock() {
    owner_.store(std::thread::id{}, std::memory_order_relaxed);
    mutex_.unlock();
  }
  /// This thread has it: another lock would never come.
  [[nodiscard]] bool mine() const {
    return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
};

}  // namespace tidepool
