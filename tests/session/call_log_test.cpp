#include "session/call_log.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/at.h"
#include "base/file.h"
#include "base/random.h"

namespace tidepool {
namespace {

constexpr const char* kTrace = TIDEPOOL_SHARED_DATA "/vgg16-trace/vgg16_batch100_3iterations.csv";
constexpr std::size_t kTracePeriod = 3172;

/// A program that asks for what was recorded from an event on, each access an op of its own.
CallLog log_of(const Recording& recording, std::size_t first) {
  CallLog log;
  const std::int32_t name = log.intern("op");
  for (std::size_t i = first; i < recording.events.size(); ++i) {
    const TraceEvent& event = recording.events[i];
    const LifeId life = event.block.value();
    const Bytes bytes = recording.blocks[at(event.block)].bytes;
    const CallLog::Use uses[] = {{life, bytes}};
    if (event.kind == EventKind::malloc) log.add_malloc({life, bytes});
    if (event.kind == EventKind::free) log.add_free({life, bytes});
    if (event.kind == EventKind::read) log.add_op(name, {1, 0, 0, false}, uses);
    if (event.kind == EventKind::write) log.add_op(name, {0, 1, 0, false}, uses);
    if (event.kind == EventKind::use) log.add_op(name, {0, 0, 1, false}, uses);
  }
  return log;
}

TEST(CallLog, FindsThePeriodOfTheMeasuredTraceFromAnywhere) {
  if (!std::filesystem::exists(kTrace)) GTEST_SKIP() << kTrace << " is not there";
  const auto text = read_file(kTrace);
  ASSERT_TRUE(text) << text.error().message;
  const auto recording = read_recording(*text, kTrace);
  ASSERT_TRUE(recording) << recording.error().message;
  Random random(11);
  for (int trial = 0; trial < 20; ++trial) {
    const std::size_t first = random.below(kTracePeriod);
    const auto period = log_of(*recording, first).find_period();
    ASSERT_TRUE(period) << first;
    EXPECT_EQ(period->calls, kTracePeriod) << first;
    EXPECT_GE(period->repeats, 2U) << first;
  }
}

/// Layers of different sizes, each with a weight, and some calls of a warm-up before them.
CallLog training(std::size_t layers, int iterations, std::size_t warm_up) {
  CallLog log;
  const std::int32_t forward = log.intern("forward"), update = log.intern("update");
  LifeId life = 0;
  std::vector<LifeId> weights;
  for (std::size_t i = 0; i < layers; ++i) {
    weights.push_back(life++);
    log.add_malloc({weights.back(), 4});
  }
  for (std::size_t i = 0; i < warm_up; ++i) {
    log.add_malloc({life, static_cast<Bytes>(3 + i)});
    log.add_free({life++, static_cast<Bytes>(3 + i)});
  }
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (std::size_t i = 0; i < layers; ++i) {
      const auto bytes = static_cast<Bytes>(64 + i);
      log.add_malloc({life, bytes});
      const CallLog::Use uses[] = {{weights[i], 4}, {life, bytes}};
      log.add_op(forward, {1, 1, 0, false}, uses);
      const CallLog::Use updated[] = {{weights[i], 4}};
      log.add_op(update, {0, 0, 1, false}, updated);
      log.add_free({life++, bytes});
    }
  }
  return log;
}

TEST(CallLog, FindsThePeriodInAThousandToAMillionEvents) {
  for (const std::size_t layers : {50U, 500U, 5'000U, 50'000U}) {
    SCOPED_TRACE(layers);
    const auto period = training(layers, 4, layers / 3).find_period();
    ASSERT_TRUE(period);
    EXPECT_EQ(period->calls, 4 * layers);
    EXPECT_GE(period->repeats, 3U);
  }
}

TEST(CallLog, WhatIsKeptHasTheSamePeriod) {
  CallLog log = training(40, 8, 100);
  log.keep_last(3 * 160 + 7);
  EXPECT_EQ(log.calls().size(), 3U * 160 + 7);
  const auto period = log.find_period();
  ASSERT_TRUE(period);
  EXPECT_EQ(period->calls, 160U);
}

}  // namespace
}  // namespace tidepool
