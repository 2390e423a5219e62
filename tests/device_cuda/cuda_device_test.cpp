// What the CUDA device has beside the promises of every device.
#include "device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "device/cuda/links.h"
#include "device/cuda/nvml.h"
#include "device_cuda/cuda_subject.h"
#include "support/device_calls.h"

namespace tidepool {
namespace {

using testing::call;
using testing::cuda_options;
using testing::four_streams;
using ::testing::HasSubstr;
using testing::kCompute;
using testing::kHost;
using testing::kIn;
using testing::kOut;
using testing::sleep_ms;

class CudaDeviceTest : public testing::CudaTest {};

TEST_F(CudaDeviceTest, WorkOnAComputeStreamRunsOnTheCallingThread) {
  CudaDevice device(cuda_options());
  device.open(four_streams());
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

TEST_F(CudaDeviceTest, TimedEventsAreOnTheClockOfNow) {
  CudaDevice device(cuda_options());
  device.open(four_streams());
  const auto event = device.create_timed_event();
  const Nanos before = device.now();
  sleep_ms(5);
  device.record(event, kCompute);
  const Nanos time = device.synchronize(event);
  sleep_ms(5);
  EXPECT_GT(time, before);
  EXPECT_LT(time, device.now());
}

TEST_F(CudaDeviceTest, ArenasAreAccountedFor) {
  CudaDevice device(cuda_options());
  device.open(four_streams(512 * kMiB, 4096));
  EXPECT_GE(device.bytes_above_level(), 512 * kMiB);
  EXPECT_LE(device.bytes_above_level(), 520 * kMiB);
}

TEST_F(CudaDeviceTest, TheFingerprintNamesGpuDriverAndLibraries) {
  const std::string fingerprint = CudaDevice({}).fingerprint();
  for (const char* part : {"sm_", "driver", "cuBLAS", "cuDNN"}) {
    EXPECT_THAT(fingerprint, HasSubstr(part));
  }
}

TEST_F(CudaDeviceTest, AGraphRepeatsCopiesAndHostWorkWithTheArgumentOfItsLaunch) {
  CudaDevice device(cuda_options());
  device.open(four_streams());
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
