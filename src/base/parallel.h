// Loops on several threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tidepool {

/// Threads that run one loop after another. Not thread-safe: one loop at a time, and none from
/// within a loop's body.
class ThreadPool {
 public:
  /// `threads` run a loop, the caller's among them; at least 1.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t threads() const { return others_.size() + 1; }

  /// Calls body(0) ... body(count - 1), each once, and returns when all are over. They begin in
  /// this order. An exception of one of them is thrown again here, after the others.
  void each(std::size_t count, const std::function<void(std::size_t)>& body);

 private:
  void serve();
  void take_turns();

  std::mutex mutex_;
  std::condition_variable begun_;
  std::condition_variable over_;
  const std::function<void(std::size_t)>* body_ = nullptr;
  std::size_t next_ = 0;
  std::size_t count_ = 0;
  std::size_t busy_ = 0;    ///< other threads in the loop
  std::uint64_t loop_ = 0;  ///< its number
  bool stopping_ = false;
  std::exception_ptr error_;
  std::vector<std::jthread> others_;
};

}  // namespace tidepool
