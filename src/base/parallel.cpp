#include "base/parallel.h"

#include <utility>

namespace tidepool {

ThreadPool::ThreadPool(std::size_t threads) {
  for (std::size_t i = 1; i < threads; ++i) others_.emplace_back([this] { serve(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  begun_.notify_all();
}

void ThreadPool::each(std::size_t count, const std::function<void(std::size_t)>& body) {
  {
    const std::scoped_lock lock(mutex_);
    body_ = &body;
    next_ = 0;
    count_ = count;
    busy_ = others_.size();
    ++loop_;
  }
  begun_.notify_all();
  take_turns();
  std::unique_lock lock(mutex_);
  over_.wait(lock, [this] { return busy_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::serve() {
  for (std::uint64_t done = 0;;) {
    {
      std::unique_lock lock(mutex_);
      begun_.wait(lock, [&] { return stopping_ || loop_ != done; });
      if (stopping_) return;
      done = loop_;
    }
    take_turns();
    const std::scoped_lock lock(mutex_);
    if (--busy_ == 0) over_.notify_one();
  }
}

void ThreadPool::take_turns() {
  std::unique_lock lock(mutex_);
  while (next_ < count_) {
    const std::size_t turn = next_++;
    lock.unlock();
    std::exception_ptr error;
    try {
      (*body_)(turn);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
  }
}

}  // namespace tidepool
