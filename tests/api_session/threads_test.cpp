// Two threads call one session at once.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "session_fixture.h"

namespace tidepool::testing {
namespace {

TEST(SessionThreads, TwoTrainInOneSession) {
  constexpr int kIterations = 40;
  tp::Session alone(small_options(1 << 20));
  ChainOfOps plain(alone);
  for (int i = 0; i < kIterations; ++i) plain.iteration();
  const auto expected = plain.words();
  for (const bool beside : {false, true}) {
    tp::SessionOptions options = small_options(6 * ChainOfOps::kBytes);
    options.plan_beside = beside;
    tp::Session session(options);
    std::atomic<int> right = 0;
    const auto train = [&](bool asks) {
      ChainOfOps chain(session);
      for (int i = 0; i < kIterations; ++i) {
        chain.iteration();
        if (asks && i % 8 == 7) session.plan_now();
        if (!asks && i % 8 == 3) static_cast<void>(session.report());
      }
      if (chain.words() == expected) ++right;
    };
    std::thread first(train, true);
    std::thread second(train, false);
    first.join();
    second.join();
    EXPECT_EQ(right, 2);
  }
}

TEST(SessionThreads, OneWaitsUntilTheOtherHasEndedItsOp) {
  tp::Session session(small_options(1 << 16));
  const tp::Block block = session.malloc(8);
  std::atomic<bool> ended = false;
  const auto p = session.begin("first", {}, block);
  std::thread second([&] {
    std::int64_t value = 0;
    session.download(block, &value, 8);
    EXPECT_TRUE(ended);
    EXPECT_EQ(value, 9);
  });
  const std::int64_t nine = 9;
  std::memcpy(p[0], &nine, 8);
  ended = true;
  session.end();
  second.join();
}

TEST(SessionThreads, PlansAreMadeBesideTheProgram) {
  tp::SessionOptions options = small_options(4 * ChainOfOps::kBytes);
  options.plan_beside = true;
  tp::Session session(options);
  ChainOfOps chain(session);
  int iterations = 0;
  // As long as it takes; the test's own time limit is that of ctest.
  while (session.report().planned_iterations < 3) {
    chain.iteration();
    ++iterations;
  }
  tp::Session whole(small_options(1 << 20));
  ChainOfOps plain(whole);
  for (int i = 0; i < iterations; ++i) plain.iteration();
  EXPECT_EQ(chain.words(), plain.words());
}

}  // namespace
}  // namespace tidepool::testing
