// What every device promises, once for all of them. The tests of a device instantiate the suite for
// a type that says how it is made:
//
//   struct Subject {
//     using Fixture = ...;  // a ::testing::Test: ends the process when a test hangs
//     using Runner = ...;   // a TagRunner for the device's memory
//     static std::unique_ptr<Device> make(const FaultPlan& faults = {});
//   };
//
// No promise depends on how fast the machine is.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/faults.h"
#include "support/device_calls.h"

namespace tidepool::testing {

/// The message of the DeviceError that the calls end in.
template <class Calls>
std::string device_error(Calls calls) {
  try {
    calls();
  } catch (const DeviceError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no exception";
  return {};
}

/// Adds one to an std::atomic<int>.
inline Work count(std::atomic<int>& ran) {
  return call([](void* c, std::int64_t, NativeStream) { ++*static_cast<std::atomic<int>*>(c); },
              &ran);
}

template <class Subject>
class EveryDevice : public Subject::Fixture {};
TYPED_TEST_SUITE_P(EveryDevice);

TYPED_TEST_P(EveryDevice, CopiesHaveTheRightContentInEveryDirection) {
  const auto device = TypeParam::make();
  device->open(four_streams(4 * kMiB, 4 * kMiB));
  std::byte* const host = device->host_arena();
  std::memset(host, 0, 4 * kMiB);
  device->copy(kIn, {0, 0}, {1, 0}, 4 * kMiB);
  device->synchronize();
  // Larger than one piece of a copy, and no multiple of it.
  constexpr Bytes kBytes = 700'001;
  for (Bytes i = 0; i < kBytes; ++i) host[i] = static_cast<std::byte>(i * 7 + i / 256);
  const auto event = device->create_event();
  device->copy(kIn, {0, 512}, {1, 0}, kBytes);
  device->record(event, kIn);
  device->wait(kOut, event);
  device->copy(kOut, {0, 2 * kMiB}, {0, 512}, kBytes);
  device->copy(kOut, {1, kMiB}, {0, 2 * kMiB - 512}, kBytes + 1024);
  device->synchronize();
  std::byte* const back = host + kMiB + 512;
  EXPECT_EQ(std::memcmp(host, back, kBytes), 0);
  EXPECT_EQ(back[-1], std::byte{0});
  EXPECT_EQ(back[kBytes], std::byte{0});
  device->copy(kHost, {1, 3 * kMiB}, {1, 1024}, 4096);
  device->synchronize();
  EXPECT_EQ(std::memcmp(host + 3 * kMiB, host + 1024, 4096), 0);
}

TYPED_TEST_P(EveryDevice, HostWorkOfAStreamRunsInOrder) {
  const auto device = TypeParam::make();
  device->open(four_streams());
  std::vector<std::int64_t> seen;
  const auto append = [](void* c, std::int64_t argument, NativeStream) {
    static_cast<std::vector<std::int64_t>*>(c)->push_back(argument);
  };
  for (std::int64_t i = 0; i < 100; ++i) device->launch(kHost, call(append, &seen, i));
  device->synchronize();
  ASSERT_EQ(seen.size(), 100U);
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TYPED_TEST_P(EveryDevice, EventsOrderHostWorkAndCopies) {
  const auto device = TypeParam::make();
  device->open(four_streams());
  std::byte* const host = device->host_arena();
  const auto fill = [](void* c, std::int64_t argument, NativeStream) {
    sleep_ms(2);
    std::memset(c, static_cast<int>(argument), 4096);
  };
  for (int round = 1; round <= 20; ++round) {
    std::memset(host, 0, 8192);
    const auto written = device->create_event();
    device->launch(kHost, call(fill, host, round));
    device->record(written, kHost);
    device->wait(kIn, written);
    device->copy(kIn, {0, 0}, {1, 0}, 4096);
    const auto arrived = device->create_event();
    device->record(arrived, kIn);
    device->wait(kOut, arrived);
    device->copy(kOut, {1, 4096}, {0, 0}, 4096);
    device->synchronize();
    ASSERT_EQ(host[8191], static_cast<std::byte>(round));
  }
}

TYPED_TEST_P(EveryDevice, AnEventNeverRecordedIsNoWait) {
  const auto device = TypeParam::make();
  device->open(four_streams());
  const auto event = device->create_event();
  device->wait(kCompute, event);
  EXPECT_EQ(device->synchronize(event), Nanos{0});
  device->synchronize();
}

TYPED_TEST_P(EveryDevice, AFailingCopyIsADeviceErrorAndNothingBehindItRuns) {
  FaultPlan faults;
  faults.fail_copy = {1, {}};
  const auto device = TypeParam::make(faults);
  device->open(four_streams());
  std::atomic<int> ran{0};
  const auto event = device->create_event();
  device->copy(kIn, {0, 0}, {1, 0}, 64);
  EXPECT_THAT(device_error([&] {
                device->copy(kIn, {0, 0}, {1, 0}, 128);
                device->record(event, kIn);
                device->wait(kCompute, event);
                device->launch(kCompute, count(ran));
                device->synchronize(event);
              }),
              ::testing::HasSubstr("copy of 128 B to the device failed"));
  EXPECT_EQ(ran, 0) << "work after a failure runs on wrong data";
}

TYPED_TEST_P(EveryDevice, TheFirstExceptionInHostWorkIsADeviceErrorAndNothingBehindItRuns) {
  const auto device = TypeParam::make();
  device->open(four_streams());
  std::atomic<int> ran{0};
  device->launch(
      kHost, call([](void*, std::int64_t, NativeStream) { throw std::runtime_error("first"); }));
  device->launch(
      kHost, call([](void*, std::int64_t, NativeStream) { throw std::runtime_error("second"); }));
  device->launch(kHost, count(ran));
  EXPECT_EQ(device_error([&] { device->synchronize(); }), "first");
  EXPECT_EQ(device_error([&] { device->synchronize(); }), "first") << "it stays";
  EXPECT_EQ(ran, 0);
}

TYPED_TEST_P(EveryDevice, AnExceptionOfAKernelIsADeviceErrorWithItsMessage) {
  const auto device = TypeParam::make();
  device->open(four_streams());
  const Work work =
      call([](void*, std::int64_t, NativeStream) { throw std::runtime_error("bad kernel"); });
  EXPECT_EQ(device_error([&] {
              device->launch(kCompute, work);
              device->synchronize();
            }),
            "bad kernel");
}

TYPED_TEST_P(EveryDevice, TheDestructorWithWorkQueuedDoesNotHang) {
  std::atomic<int> ran{0};
  {
    const auto device = TypeParam::make();
    device->open(four_streams());
    const auto slow = [](void* c, std::int64_t, NativeStream) {
      sleep_ms(1);
      ++*static_cast<std::atomic<int>*>(c);
    };
    for (int i = 0; i < 50; ++i) device->launch(i % 2 == 0 ? kCompute : kHost, call(slow, &ran));
  }
  EXPECT_LE(ran, 50);
}

TYPED_TEST_P(EveryDevice, ArenasThatAreTooLargeAreDeviceErrorsThatNameThem) {
  for (const Bytes bytes : {Bytes{1} << 46, std::numeric_limits<Bytes>::max() / 4}) {
    const auto device = TypeParam::make();
    EXPECT_THAT(device_error([&] { device->open(four_streams(bytes, 64)); }),
                ::testing::HasSubstr("device arena"));
    const auto other = TypeParam::make();
    EXPECT_THAT(device_error([&] { other->open(four_streams(64, bytes)); }),
                ::testing::HasSubstr("host arena"));
  }
}

TYPED_TEST_P(EveryDevice, EmptyArenasAndADeviceNeverOpenedAreFine) {
  const auto never = TypeParam::make();
  const auto device = TypeParam::make();
  device->open(four_streams(0, 0));
  device->synchronize();
}

TYPED_TEST_P(EveryDevice, ArenasAreAligned) {
  const auto device = TypeParam::make();
  device->open(four_streams(4096, 4096));
  for (const SpaceId space : {0, 1}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device->arena(space)) %
                  static_cast<std::uintptr_t>(device->alignment()),
              0U);
  }
}

REGISTER_TYPED_TEST_SUITE_P(EveryDevice, CopiesHaveTheRightContentInEveryDirection,
                            HostWorkOfAStreamRunsInOrder, EventsOrderHostWorkAndCopies,
                            AnEventNeverRecordedIsNoWait,
                            AFailingCopyIsADeviceErrorAndNothingBehindItRuns,
                            TheFirstExceptionInHostWorkIsADeviceErrorAndNothingBehindItRuns,
                            AnExceptionOfAKernelIsADeviceErrorWithItsMessage,
                            TheDestructorWithWorkQueuedDoesNotHang,
                            ArenasThatAreTooLargeAreDeviceErrorsThatNameThem,
                            EmptyArenasAndADeviceNeverOpenedAreFine, ArenasAreAligned);

}  // namespace tidepool::testing
