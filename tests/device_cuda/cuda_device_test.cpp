// The promises of Device on a GPU.
#include "device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "device/cuda/links.h"
#include "device/cuda/nvml.h"
#include "support/cuda.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

constexpr StreamId kCompute = 0, kOut = 1, kIn = 2, kHost = 3;

class CudaDeviceTest : public testing::CudaTest {
 protected:
  static CudaDeviceOptions options() {
    CudaDeviceOptions o;
    o.libraries = false;
    return o;
  }
  static DeviceConfig config(Bytes device = 1 << 20, Bytes host = 1 << 20) {
    return {
        device, host, {StreamKind::compute, StreamKind::copy, StreamKind::copy, StreamKind::host}};
  }
  static Work call(void (*run)(void*, std::int64_t, NativeStream), void* context,
                   std::int64_t argument = 0) {
    Work work;
    work.run = run;
    work.context = context;
    work.argument = argument;
    return work;
  }
  static void sleep_ms(std::int64_t n) {
    std::this_thread::sleep_for(std::chrono::milliseconds(n));
  }
};

TEST_F(CudaDeviceTest, CopiesHaveTheRightContentInEveryDirection) {
  CudaDevice device(options());
  device.open(config());
  constexpr Bytes kBytes = 300'001;
  std::byte* const host = device.host_arena();
  for (Bytes i = 0; i < kBytes; ++i) host[i] = static_cast<std::byte>(i * 7 + i / 256);
  std::byte* const back = host + 600'064;
  const auto event = device.create_event();
  device.copy(kIn, {0, 512}, {1, 0}, kBytes);
  device.record(event, kIn);
  device.wait(kOut, event);
  device.copy(kOut, {0, 512 * 1024}, {0, 512}, kBytes);
  device.copy(kOut, {1, 600'064}, {0, 512 * 1024}, kBytes);
  device.synchronize();
  EXPECT_EQ(std::memcmp(host, back, kBytes), 0);
  device.copy(kHost, {1, 512}, {1, 600'064 + 1024}, 4096);
  device.synchronize();
  EXPECT_EQ(std::memcmp(host + 512, back + 1024, 4096), 0);
}

TEST_F(CudaDeviceTest, HostWorkOfAStreamRunsInOrder) {
  CudaDevice device(options());
  device.open(config());
  std::vector<std::int64_t> seen;
  for (std::int64_t i = 0; i < 100; ++i) {
    device.launch(kHost, call(
                             [](void* c, std::int64_t argument, NativeStream) {
                               static_cast<std::vector<std::int64_t>*>(c)->push_back(argument);
                             },
                             &seen, i));
  }
  device.synchronize();
  ASSERT_EQ(seen.size(), 100U);
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST_F(CudaDeviceTest, EventsOrderHostWorkAndCopies) {
  CudaDevice device(options());
  device.open(config());
  for (int round = 0; round < 20; ++round) {
    std::byte* const host = device.host_arena();
    std::memset(host, 0, 8192);
    const auto written = device.create_event();
    device.launch(kHost, call(
                             [](void* c, std::int64_t argument, NativeStream) {
                               sleep_ms(2);
                               std::memset(c, static_cast<int>(argument), 4096);
                             },
                             host, round + 1));
    device.record(written, kHost);
    device.wait(kIn, written);
    device.copy(kIn, {0, 0}, {1, 0}, 4096);
    const auto arrived = device.create_event();
    device.record(arrived, kIn);
    device.wait(kOut, arrived);
    device.copy(kOut, {1, 4096}, {0, 0}, 4096);
    device.synchronize();
    EXPECT_EQ(host[8191], static_cast<std::byte>(round + 1));
  }
}

TEST_F(CudaDeviceTest, WorkOnAComputeStreamRunsOnTheCallingThread) {
  CudaDevice device(options());
  device.open(config());
  struct Seen {
    std::thread::id thread;
    NativeStream stream = nullptr;
  } seen;
  device.launch(kCompute, call(
                              [](void* c, std::int64_t, NativeStream stream) {
                                *static_cast<Seen*>(c) = {std::this_thread::get_id(), stream};
                              },
                              &seen));
  EXPECT_EQ(seen.thread, std::this_thread::get_id());
  EXPECT_NE(seen.stream, nullptr);
}

TEST_F(CudaDeviceTest, AnEventNeverRecordedIsNoWait) {
  CudaDevice device(options());
  device.open(config());
  const auto event = device.create_event();
  device.wait(kCompute, event);
  EXPECT_EQ(device.synchronize(event), Nanos{0});
  device.synchronize();
}

TEST_F(CudaDeviceTest, TimedEventsAreOnTheClockOfNow) {
  CudaDevice device(options());
  device.open(config());
  const auto event = device.create_timed_event();
  const Nanos before = device.now();
  sleep_ms(5);
  device.record(event, kCompute);
  const Nanos time = device.synchronize(event);
  sleep_ms(5);
  EXPECT_GT(time, before);
  EXPECT_LT(time, device.now());
}

TEST_F(CudaDeviceTest, AFailingCopyIsADeviceError) {
  CudaDeviceOptions o = options();
  o.faults.fail_copy = {1, {}};
  CudaDevice device(o);
  device.open(config());
  device.copy(kIn, {0, 0}, {1, 0}, 64);
  try {
    device.copy(kIn, {0, 0}, {1, 0}, 128);
    FAIL() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("copy of 128 B to the device failed"));
  }
}

TEST_F(CudaDeviceTest, AnExceptionInHostWorkIsADeviceErrorAndLaterHostWorkDoesNotRun) {
  CudaDevice device(options());
  device.open(config());
  std::atomic<int> ran{0};
  device.launch(kHost, call([](void*, std::int64_t,
                               NativeStream) { throw std::runtime_error("bad host op"); },
                            nullptr));
  device.launch(
      kHost, call([](void* c, std::int64_t, NativeStream) { ++*static_cast<std::atomic<int>*>(c); },
                  &ran));
  try {
    device.synchronize();
    FAIL() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("bad host op"));
  }
  EXPECT_EQ(ran, 0);
}

TEST_F(CudaDeviceTest, AnExceptionInLaunchingIsADeviceErrorWithItsMessage) {
  CudaDevice device(options());
  device.open(config());
  const Work work = call(
      [](void*, std::int64_t, NativeStream) { throw std::runtime_error("bad kernel"); }, nullptr);
  try {
    device.launch(kCompute, work);
    FAIL() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "bad kernel");
  }
}

TEST_F(CudaDeviceTest, ArenasThatAreTooLargeAreDeviceErrorsThatNameThem) {
  CudaDevice device(options());
  try {
    device.open(config(Bytes{1} << 46, 64));
    FAIL() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("device arena"));
  }
  CudaDevice other(options());
  try {
    other.open(config(64, Bytes{1} << 46));
    FAIL() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("host arena"));
  }
}

TEST_F(CudaDeviceTest, ArenasAreAlignedAndAccountedFor) {
  CudaDevice device(options());
  device.open(config(512 * kMiB, 4096));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device.arena()) %
                static_cast<std::uintptr_t>(device.alignment()),
            0U);
  EXPECT_GE(device.bytes_above_level(), 512 * kMiB);
  EXPECT_LE(device.bytes_above_level(), 520 * kMiB);
}

TEST_F(CudaDeviceTest, EmptyArenasAndADeviceNeverOpenedAreFine) {
  CudaDevice never(options());
  CudaDevice device(options());
  device.open(config(0, 0));
  device.synchronize();
}

TEST_F(CudaDeviceTest, TheFingerprintNamesGpuDriverAndLibraries) {
  const std::string fingerprint = CudaDevice({}).fingerprint();
  for (const char* part : {"sm_", "driver", "cuBLAS", "cuDNN"}) {
    EXPECT_THAT(fingerprint, HasSubstr(part));
  }
}

TEST_F(CudaDeviceTest, AGraphRepeatsCopiesAndHostWorkWithTheArgumentOfItsLaunch) {
  CudaDevice device(options());
  device.open(config());
  std::byte* const host = device.host_arena();
  struct State {
    std::byte* to;
    std::vector<std::int64_t> arguments;
  } state{host, {}};
  device.begin_capture();
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto event = device.create_event();
    device.launch(kHost, call(
                             [](void* c, std::int64_t argument, NativeStream) {
                               auto& s = *static_cast<State*>(c);
                               s.arguments.push_back(argument);
                               std::memset(s.to, static_cast<int>(argument), 256);
                             },
                             &state, i));
    device.record(event, kHost);
    device.wait(kIn, event);
    device.copy(kIn, {0, 0}, {1, 0}, 256);
    const auto copied = device.create_event();
    device.record(copied, kIn);
    device.wait(kHost, copied);
  }
  const auto graph = device.end_capture();
  EXPECT_TRUE(state.arguments.empty()) << "captured work ran";
  for (std::int64_t i = 0; i < 3; ++i) device.launch_graph(graph, 10 * i);
  device.synchronize();
  EXPECT_THAT(state.arguments, ::testing::ElementsAre(0, 1, 10, 11, 20, 21));
  device.copy(kOut, {1, 512}, {0, 0}, 256);
  device.synchronize();
  EXPECT_EQ(host[512], std::byte{21});
}

TEST_F(CudaDeviceTest, TheLinkIsMeasuredInBothDirectionsAloneAndTogether) {
  const LinkMeasurement links = measure_links();
  // PCIe 3 x4 at least; pageable memory or a broken clock would be far off.
  for (const double speed : {links.to_host.bytes_per_second, links.to_device.bytes_per_second,
                             links.to_host_both, links.to_device_both}) {
    EXPECT_GT(speed, 2e9);
    EXPECT_LT(speed, 2e12);
  }
  EXPECT_LE(links.to_host_both, 1.2 * links.to_host.bytes_per_second);
  EXPECT_GT(links.to_host.latency, Nanos{0});
  EXPECT_LT(links.to_host.latency, Nanos{1'000'000});
}

TEST_F(CudaDeviceTest, PowerIsMeteredWhereTheDriverLetsUs) {
  cuda::EnergyMeter meter(0);
  if (!meter.available()) GTEST_SKIP() << meter.why_not();
  meter.start();
  sleep_ms(200);
  const cuda::EnergyReading reading = meter.stop();
  EXPECT_GE(reading.seconds, 0.2);
  EXPECT_GT(reading.maximum_watts, 0);
}

}  // namespace
}  // namespace tidepool
