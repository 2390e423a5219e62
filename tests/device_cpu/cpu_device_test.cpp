// What the CPU device has beside the promises of every device. No assertion here depends on how
// fast this machine is: times are bounded from below only.
#include "device/cpu/cpu_device.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "device_cpu/cpu_subject.h"
#include "support/device_calls.h"

namespace tidepool {
namespace {

using testing::call;
using testing::cpu_options;
using testing::four_streams;
using ::testing::HasSubstr;
using testing::sleep_ms;

class CpuDeviceTest : public testing::CpuTest {};

TEST_F(CpuDeviceTest, SeveralDevicesHaveArenasOfTheirOwn) {
  CpuDevice device(cpu_options());
  DeviceConfig three = four_streams();
  three.arenas = {{SpaceKind::device, 4096}, {SpaceKind::device, 8192}, {SpaceKind::host, 4096}};
  device.open(three);
  std::memset(device.arena(2), 7, 64);
  device.copy(1, {1, 4096}, {2, 0}, 64);
  device.synchronize();
  EXPECT_EQ(device.arena(1)[4096 + 63], std::byte{7});
  EXPECT_EQ(device.arena(0)[0], std::byte{0});
  three.arenas = {{SpaceKind::device, 1}, {SpaceKind::device, 1}};
  EXPECT_THROW(CpuDevice(cpu_options()).open(three), DeviceError) << "no host";
  three.arenas = {{SpaceKind::device, 1}, {SpaceKind::host, 1}, {SpaceKind::file, 1}};
  EXPECT_THROW(CpuDevice(cpu_options()).open(three), DeviceError);
}

TEST_F(CpuDeviceTest, CopiesOfTwoDevicesShareTheirBus) {
  CpuDeviceOptions o = cpu_options();
  o.to_device = {1e9, Nanos{0}};
  o.bus_to_device = 100e6;
  CpuDevice device(o);
  DeviceConfig two = four_streams();
  two.arenas = {
      {SpaceKind::device, 1 << 20}, {SpaceKind::device, 1 << 20}, {SpaceKind::host, 1 << 20}};
  device.open(two);
  const Nanos begin = device.now();
  device.copy(1, {0, 0}, {2, 0}, 1'000'000);
  device.copy(2, {1, 0}, {2, 0}, 1'000'000);
  device.synchronize();
  EXPECT_GE(device.now() - begin, Nanos{20'000'000});
}

TEST_F(CpuDeviceTest, ACopyTakesAtLeastLatencyPlusBytesOverBandwidth) {
  CpuDeviceOptions o = cpu_options();
  o.to_host = {40e6, std::chrono::milliseconds(3)};
  o.to_device = {80e6, std::chrono::milliseconds(7)};
  CpuDevice device(o);
  device.open(four_streams());
  const auto time_of = [&](CopyRoute direction) {
    const auto begin = device.create_event();
    const auto end = device.create_event();
    device.record(begin, 1);
    device.copy(1, {direction.to, 0}, {direction.from, 0}, 1'000'000);
    device.record(end, 1);
    const Nanos ended = device.synchronize(end);
    return ended - device.synchronize(begin);
  };
  EXPECT_GE(time_of(CopyRoute::to_host), Nanos{25'000'000 + 3'000'000});
  EXPECT_GE(time_of(CopyRoute::to_device), Nanos{12'500'000 + 7'000'000});
}

TEST_F(CpuDeviceTest, EventsOrderTwoStreams) {
  CpuDevice device(cpu_options());
  device.open(four_streams());
  struct State {
    std::atomic<int> value{0};
    int seen = -1;
  };
  for (int round = 0; round < 20; ++round) {
    State state;
    const auto event = device.create_event();
    device.launch(0, call(
                         [](void* c, std::int64_t, NativeStream) {
                           sleep_ms(2);
                           static_cast<State*>(c)->value = 1;
                         },
                         &state));
    device.record(event, 0);
    device.wait(3, event);
    device.launch(3, call(
                         [](void* c, std::int64_t, NativeStream) {
                           auto& s = *static_cast<State*>(c);
                           s.seen = s.value;
                         },
                         &state));
    device.synchronize();
    ASSERT_EQ(state.seen, 1);
  }
}

TEST_F(CpuDeviceTest, AWaitRefersToTheLatestRecordBeforeItAndSurvivesRecordingAgain) {
  CpuDevice device(cpu_options());
  device.open(four_streams());
  std::atomic<int> value{0};
  const auto event = device.create_event();
  const auto add = [](void* c, std::int64_t, NativeStream) {
    ++*static_cast<std::atomic<int>*>(c);
  };
  device.launch(0, call(add, &value));
  device.record(event, 0);
  device.wait(3, event);  // of the first record: must not wait for the sleeper below
  std::atomic<bool> release{false};
  device.launch(0, call(
                       [](void* c, std::int64_t, NativeStream) {
                         while (!*static_cast<std::atomic<bool>*>(c)) sleep_ms(1);
                       },
                       &release));
  device.record(event, 0);
  const auto done = device.create_event();
  device.launch(3, call(add, &value));
  device.record(done, 3);
  device.synchronize(done);  // hangs when the wait moved on to the second record
  EXPECT_EQ(value, 2);
  release = true;
  device.synchronize();
}

TEST_F(CpuDeviceTest, StreamsRunAtTheSameTime) {
  CpuDevice device(cpu_options());
  device.open(four_streams());
  // Each waits for the other to have started: only possible side by side.
  struct State {
    std::atomic<int> started{0};
  } state;
  const auto meet = [](void* c, std::int64_t, NativeStream) {
    auto& s = *static_cast<State*>(c);
    ++s.started;
    while (s.started < 2) sleep_ms(1);
  };
  device.launch(0, call(meet, &state));
  device.launch(3, call(meet, &state));
  device.synchronize();
  EXPECT_EQ(state.started, 2);
}

/// Streams are taken down one after another; a wait still queued on a later one refers to an
/// earlier one (under the address sanitizer this reads freed memory when that goes wrong).
TEST_F(CpuDeviceTest, TheDestructorWithWaitsQueuedAcrossStreamsDoesNotHang) {
  for (const auto& [waited_for, waiting] : {std::pair{0, 3}, std::pair{3, 0}, std::pair{1, 2}}) {
    std::atomic<int> ran{0};
    {
      CpuDevice device(cpu_options());
      device.open(four_streams());
      const auto event = device.create_event();
      device.launch(waiting,
                    call([](void*, std::int64_t, NativeStream) { sleep_ms(30); }, nullptr));
      device.record(event, waited_for);
      device.wait(waiting, event);
      device.launch(waiting, call([](void* c, std::int64_t,
                                     NativeStream) { ++*static_cast<std::atomic<int>*>(c); },
                                  &ran));
    }
    EXPECT_LE(ran, 1);
  }
}

TEST_F(CpuDeviceTest, TheDestructorAfterAFailureDoesNotHang) {
  CpuDeviceOptions o = cpu_options();
  o.faults.fail_copy = {0, {}};
  CpuDevice device(o);
  device.open(four_streams());
  const auto event = device.create_event();
  device.copy(1, {0, 0}, {1, 0}, 64);
  device.record(event, 1);
  device.wait(0, event);
  device.launch(0, call([](void*, std::int64_t, NativeStream) {}, nullptr));
}

TEST_F(CpuDeviceTest, ArenasAreAlignedAndZeroed) {
  CpuDevice device(cpu_options());
  device.open(four_streams(4096, 4096));
  EXPECT_EQ(device.alignment(), 64);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device.arena()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device.host_arena()) % 64, 0u);
  for (int i = 0; i < 4096; ++i) ASSERT_EQ(device.arena()[i], std::byte{0});
}

TEST_F(CpuDeviceTest, AnUntouchedArenaOfTheHostMayBeLargerThanWhatIsAvailable) {
  CpuDeviceOptions options = cpu_options();
  options.untouched = true;
  CpuDevice device(options);
  device.open(four_streams(4096, Bytes{1} << 36));
  std::memset(device.arena(), 7, 64);
  device.copy(1, {1, Bytes{1} << 35}, {0, 0}, 64);
  device.copy(1, {0, 64}, {1, Bytes{1} << 35}, 64);
  device.synchronize();
  EXPECT_EQ(device.arena()[127], std::byte{7});
  EXPECT_THROW(CpuDevice(options).open(four_streams(Bytes{1} << 40, 4096)), DeviceError);
}

TEST_F(CpuDeviceTest, TheFingerprintHasTheThreads) {
  CpuDeviceOptions o;
  o.threads = 3;
  EXPECT_THAT(CpuDevice(o).fingerprint(), HasSubstr("3 compute threads"));
  o.threads = 1;
  EXPECT_THAT(CpuDevice(o).fingerprint(), HasSubstr("1 compute thread"));
  o.threads = 0;
  EXPECT_THAT(CpuDevice(o).fingerprint(),
              HasSubstr(fmt::format("{} compute thread", default_compute_threads())));
  EXPECT_GE(default_compute_threads(), 1);
}

TEST_F(CpuDeviceTest, TheComputeStreamHasItsThreads) {
  CpuDeviceOptions o;
  o.threads = 3;
  CpuDevice device(o);
  device.open(four_streams());
  int threads = 0;
  device.launch(0, call([](void* c, std::int64_t,
                           NativeStream) { *static_cast<int*>(c) = omp_get_max_threads(); },
                        &threads));
  device.synchronize();
  EXPECT_EQ(threads, 3);
}

}  // namespace
}  // namespace tidepool
