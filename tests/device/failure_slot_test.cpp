#include "device/failure_slot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tidepool {
namespace {

std::string message_of(const FailureSlot& slot) {
  try {
    slot.rethrow();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(FailureSlot, KeepsTheFirstErrorForEveryoneWhoAsks) {
  FailureSlot slot;
  EXPECT_FALSE(slot.failed());
  EXPECT_EQ(message_of(slot), "nothing thrown");
  slot.set("first");
  slot.set("second");
  EXPECT_TRUE(slot.failed());
  EXPECT_EQ(message_of(slot), "first");
  EXPECT_EQ(message_of(slot), "first");
}

TEST(FailureSlot, AnEmptyMessageIsAFailureToo) {
  FailureSlot slot;
  slot.set("");
  slot.set("later");
  EXPECT_EQ(message_of(slot), "");
}

TEST(FailureSlot, WorkAfterAFailureIsSkipped) {
  FailureSlot slot;
  int ran = 0;
  slot.run([&] { ++ran; }, "unknown");
  slot.run([] { throw DeviceError("broken"); }, "unknown");
  slot.run([&] { ++ran; }, "unknown");
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(message_of(slot), "broken");
}

TEST(FailureSlot, WhatIsNoExceptionOfTheLibraryIsNamedByTheCaller) {
  FailureSlot slot;
  slot.run([] { throw 7; }, "unknown work failed");
  EXPECT_EQ(message_of(slot), "unknown work failed");
}

TEST(FailureSlot, OneOfManyThreadsWins) {
  FailureSlot slot;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&slot, i] { slot.set(std::string(100, static_cast<char>('a' + i))); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string message = message_of(slot);
  ASSERT_EQ(message.size(), 100U);
  EXPECT_EQ(message, std::string(100, message[0]));
}

}  // namespace
}  // namespace tidepool
