// What the stand-in itself promises: work in every order CUDA allows and no other, and each rule
// that is broken is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "cuda_standin/device_code.h"
#include "cuda_standin/standin.h"

namespace {

using standin::take_violations;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}
cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
  return event;
}

class StandinRules : public ::testing::Test {
 protected:
  /// Notes its letter when it runs.
  void put(cudaStream_t stream, char letter) {
    standin::enqueue(
        stream, [this, letter] { seen_ += letter; }, "a letter");
  }
  static void expect_violation(const char* part) {
    EXPECT_THAT(take_violations(), ElementsAre(HasSubstr(part)));
  }
  void begin() {
    ASSERT_EQ(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  cudaError_t end() {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(a_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    return error;
  }

  cudaStream_t a_ = new_stream(), b_ = new_stream();
  cudaEvent_t event_ = new_event();
  std::string seen_;
};

TEST_F(StandinRules, AStreamIsInOrderAndStreamsAreInAnyOrderByTheSeed) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::string same_seed;
    for (int repeat = 0; repeat < 2; ++repeat) {
      standin::set_seed(seed);
      seen_.clear();
      for (const char letter : {'1', '2'}) {
        put(a_, letter);
        put(b_, static_cast<char>(letter + 2));
      }
      cudaDeviceSynchronize();
      EXPECT_LT(seen_.find('1'), seen_.find('2'));
      EXPECT_LT(seen_.find('3'), seen_.find('4'));
      EXPECT_TRUE(repeat == 0 || seen_ == same_seed) << seed;
      same_seed = seen_;
    }
    orders.insert(same_seed);
  }
  EXPECT_EQ(orders.size(), 6U) << "all orders there are";
}

TEST_F(StandinRules, AWaitHoldsForTheLatestRecordBeforeItAndForNoneThereIsNone) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    standin::set_seed(seed);
    seen_.clear();
    put(a_, '1');
    cudaEventRecord(event_, a_);
    cudaStreamWaitEvent(b_, event_, 0);
    put(b_, '2');
    put(a_, '3');
    cudaEventRecord(event_, a_);  // after the wait: not waited for
    cudaDeviceSynchronize();
    EXPECT_LT(seen_.find('1'), seen_.find('2'));
  }
  cudaEvent_t never = new_event();
  EXPECT_EQ(cudaStreamWaitEvent(b_, never, 0), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(never), cudaSuccess);
  EXPECT_THAT(take_violations(), IsEmpty());
}

TEST_F(StandinRules, AGraphRunsInEveryOrderItsEdgesAllow) {
  begin();
  put(a_, '1');
  cudaEventRecord(event_, a_);
  cudaStreamWaitEvent(b_, event_, 0);
  put(a_, '2');
  put(b_, '3');
  cudaEvent_t joined = new_event();
  cudaEventRecord(joined, b_);
  cudaStreamWaitEvent(a_, joined, 0);
  put(a_, '4');
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(a_, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(seen_, "") << "captured work does not run";
  std::set<std::string> orders;
  for (int i = 0; i < 50; ++i) {
    seen_.clear();
    cudaGraphLaunch(executable, a_);
    cudaStreamSynchronize(a_);
    orders.insert(seen_);
  }
  EXPECT_THAT(orders, ElementsAre("1234", "1324"));
  EXPECT_THAT(take_violations(), IsEmpty());
  cudaGraphLaunch(executable, a_);
  standin::set_seed(1);
  cudaGraphExecDestroy(executable);
  (void)take_violations();  // whether it still ran is the seed's
  cudaDeviceSynchronize();
}

TEST_F(StandinRules, WhatACaptureForbidsIsTold) {
  const auto refused = [&](const char* what, const auto& call) {
    begin();
    EXPECT_NE(call(), cudaSuccess) << what;
    expect_violation(what);
    EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated) << what;
  };
  refused("cudaMalloc", [] {
    void* memory = nullptr;
    return cudaMalloc(&memory, 16);
  });
  refused("cudaDeviceSynchronize", [] { return cudaDeviceSynchronize(); });
  refused("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(a_); });
  refused("cudaEventSynchronize", [&] { return cudaEventSynchronize(event_); });
  cudaEvent_t before = new_event();
  cudaEventRecord(before, b_);
  refused("recorded outside", [&] { return cudaStreamWaitEvent(a_, before, 0); });
}

TEST_F(StandinRules, ACaptureWhoseStreamsHaveNotJoinedFails) {
  begin();
  cudaEventRecord(event_, a_);
  cudaStreamWaitEvent(b_, event_, 0);
  put(b_, '1');
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  expect_violation("not joined");
  // An event of a capture that has ended is of no use outside.
  EXPECT_NE(cudaStreamWaitEvent(b_, event_, 0), cudaSuccess);
  expect_violation("capture that has ended");
  EXPECT_NE(cudaEventSynchronize(event_), cudaSuccess);
  expect_violation("recorded in a capture");
}

TEST_F(StandinRules, TheFirstUseOfAKernelInACaptureIsTold) {
  const auto kernel = [] {};
  begin();
  standin::launch("first", kernel, dim3(1), dim3(32), 0, a_);
  expect_violation("first time while a graph is captured");
  EXPECT_EQ(end(), cudaSuccess);
}

TEST_F(StandinRules, AHostFunctionMayNotCallCuda) {
  cudaLaunchHostFunc(
      a_, [](void* event) { EXPECT_NE(cudaEventSynchronize(static_cast<cudaEvent_t>(event)), 0); },
      event_);
  cudaStreamSynchronize(a_);
  expect_violation("called by a host function");
}

TEST_F(StandinRules, CopiesNameTheMemoryTheyAreOf) {
  void *device = nullptr, *pinned = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 64), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(&pinned, 64, 0), cudaSuccess);
  std::array<char, 64> pageable{};
  EXPECT_EQ(cudaMemcpyAsync(device, pinned, 64, cudaMemcpyHostToDevice, a_), cudaSuccess);
  EXPECT_NE(cudaMemcpyAsync(device, pinned, 64, cudaMemcpyDeviceToHost, a_), cudaSuccess);
  expect_violation("kind 2");
  EXPECT_NE(cudaMemcpyAsync(device, pageable.data(), 64, cudaMemcpyHostToDevice, a_), cudaSuccess);
  expect_violation("not pinned");
  EXPECT_NE(cudaMemcpyAsync(device, pinned, 65, cudaMemcpyHostToDevice, a_), cudaSuccess);
  expect_violation("65 bytes");
  cudaFree(device);
  EXPECT_NE(cudaFree(device), cudaSuccess);
  expect_violation("cudaFree");
  cudaFreeHost(pinned);
}

TEST_F(StandinRules, SettingMemoryIsNotOverWhenTheCallReturns) {
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 4), cudaSuccess);
  bool late = false;
  for (std::uint64_t seed = 0; seed < 30 && !late; ++seed) {
    standin::set_seed(seed);
    cudaMemset(device, 0, 4);
    int value = -1;
    standin::enqueue(
        a_, [&] { value = *static_cast<int*>(device); }, "a read");
    standin::enqueue(
        a_, [&] { *static_cast<int*>(device) = 7; }, "a write");
    cudaStreamSynchronize(a_);
    late = value != 0;
    cudaDeviceSynchronize();
  }
  EXPECT_TRUE(late) << "other streams do not wait for the default stream";
  cudaFree(device);
}

// ---- Device code

constexpr int kThreads = 64;

/// Each thread puts its value where its neighbour looks; `barrier`: and waits between.
template <bool barrier>
void neighbours(int* sums) {
  __shared__ int values[kThreads];
  standin::shared_variable(values, sizeof values);
  values[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
  if constexpr (barrier) __syncthreads();
  sums[threadIdx.x] = values[(threadIdx.x + 1) % kThreads];
}

int wrong_sums(cudaStream_t stream, void (*kernel)(int*)) {
  std::vector<int> sums(kThreads);
  standin::launch(
      "neighbours", [&] { kernel(sums.data()); }, dim3(3), dim3(kThreads), 0, stream);
  cudaStreamSynchronize(stream);
  int wrong = 0;
  for (int i = 0; i < kThreads; ++i) wrong += sums[static_cast<std::size_t>(i)] != (i + 1) % 64 + 1;
  return wrong;
}

TEST_F(StandinRules, AMissingBarrierIsSeen) {
  EXPECT_EQ(wrong_sums(a_, neighbours<true>), 0);
  EXPECT_GT(wrong_sums(a_, neighbours<false>), 0);
}

TEST_F(StandinRules, LanesExchangeValues) {
  std::vector<double> sums(kThreads);
  std::vector<int> all(kThreads), mixed(kThreads);
  standin::launch(
      "exchange",
      [&] {
        const auto at = static_cast<std::size_t>(threadIdx.x);
        double sum = threadIdx.x;
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0U, sum, offset);
        sums[at] = sum;
        mixed[at] = __shfl_xor_sync(~0U, static_cast<int>(threadIdx.x), 5);
        all[at] = __all_sync(~0U, threadIdx.x < 32);
      },
      dim3(1), dim3(kThreads), 0, a_);
  cudaStreamSynchronize(a_);
  EXPECT_EQ(sums[0], 31 * 32 / 2);
  EXPECT_EQ(sums[32], 31 * 32 / 2 + 32 * 32);
  EXPECT_EQ(mixed[33], 36);
  EXPECT_EQ(all[31], 1);
  EXPECT_EQ(all[32], 0);
}

TEST_F(StandinRules, ABarrierThatNotAllThreadsReachEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        standin::launch(
            "diverges",
            [] {
              if (threadIdx.x < 32) __syncthreads();
              if (threadIdx.x != 40) (void)__shfl_xor_sync(~0U, 1, 1);
            },
            dim3(1), dim3(kThreads), 0, new_stream());
        cudaDeviceSynchronize();
      },
      "not all threads reach");
}

TEST_F(StandinRules, WaitingForNothingEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(standin::wait_for_ever(), "nothing is left that could run");
}

TEST_F(StandinRules, ImpossibleLaunchesAreTold) {
  standin::launch(
      "none", [] {}, dim3(0), dim3(32), 0, a_);
  expect_violation("launch of 0");
  standin::launch(
      "many", [] {}, dim3(1), dim3(2048), 0, a_);
  expect_violation("2048");
  standin::launch(
      "tall", [] {}, dim3(1, 70000), dim3(32), 0, a_);
  expect_violation("70000");
}

TEST_F(StandinRules, CallsFailWhenToldTo) {
  standin::fail_call("cudaMalloc", cudaErrorMemoryAllocation, 1);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 16), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  standin::fail_call("cudaStreamSynchronize", cudaErrorIllegalAddress, 0, true);
  EXPECT_EQ(cudaStreamSynchronize(a_), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaFree(memory), cudaErrorIllegalAddress) << "for ever";
  standin::forget_failures();
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

}  // namespace
