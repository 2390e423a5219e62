// How long searches on behalf of a caller hear of its wish to stop, and tell it of their progress.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/progress.h"

namespace tidepool::api {

/// Passes progress on: from the thread that made it only, at most 20 times a second. What a callee
/// throws is kept for `rethrow`, and nothing more is passed on.
class CalledProgress : public ProgressSink {
 public:
  using Callee = std::function<void(double fraction, const std::string& what)>;
  explicit CalledProgress(Callee callee) : callee_(std::move(callee)) {}

  void update(double fraction, std::string_view what) override {
    if (!callee_ || thrown_ || std::this_thread::get_id() != caller_) return;
    const auto now = std::chrono::steady_clock::now();
    if (called_ && now - last_ < kLeastTime) return;
    called_ = true;
    last_ = now;
    try {
      callee_(fraction, std::string(what));
    } catch (...) {
      thrown_ = std::current_exception();
      stopped_.store(true, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] bool threw() const { return stopped_.load(std::memory_order_relaxed); }

  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  static constexpr std::chrono::milliseconds kLeastTime{50};

  Callee callee_;
  std::thread::id caller_ = std::this_thread::get_id();
  bool called_ = false;
  std::chrono::steady_clock::time_point last_;
  std::exception_ptr thrown_;
  std::atomic<bool> stopped_ = false;  ///< it threw; read by all threads
};

/// A flag in the caller's memory, read by any thread.
inline bool is_raised(const std::int32_t* flag) {
  return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

}  // namespace tidepool::api
