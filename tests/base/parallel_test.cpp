#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <stdexcept>

namespace tidepool {
namespace {

TEST(ThreadPool, CallsTheBodyOnceForEachTurn) {
  for (const std::size_t threads : {1U, 2U, 5U}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::size_t count : {0U, 1U, 3U, 100U}) {
      std::vector<std::atomic<int>> calls(count);
      pool.each(count, [&](std::size_t i) { ++calls[i]; });
      for (const auto& n : calls) EXPECT_EQ(n, 1);
    }
  }
}

TEST(ThreadPool, AsManyTurnsAsThreadsRunAtATime) {
  ThreadPool pool(3);
  std::barrier<> all(3);  // would wait for ever otherwise
  for (int loop = 0; loop < 20; ++loop) {
    pool.each(3, [&](std::size_t) { all.arrive_and_wait(); });
  }
}

TEST(ThreadPool, OneThreadTakesTheTurnsInOrder) {
  ThreadPool pool(1);
  std::vector<std::size_t> turns;
  pool.each(4, [&](std::size_t i) { turns.push_back(i); });
  EXPECT_EQ(turns, (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST(ThreadPool, AnExceptionComesOutAfterTheOtherTurnsAndThePoolGoesOn) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  const auto body = [&](std::size_t i) {
    ++calls;
    if (i == 1) throw std::runtime_error("turn 1");
  };
  EXPECT_THROW(pool.each(10, body), std::runtime_error);
  EXPECT_EQ(calls, 10);
  pool.each(5, [&](std::size_t) { ++calls; });
  EXPECT_EQ(calls, 15);
}

}  // namespace
}  // namespace tidepool
