// The stand-in's rules of several GPUs, which are CUDA's: what belongs to a GPU is refused on
// another.
#include <cublas_v2.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "cuda_standin/device_code.h"
#include "cuda_standin/standin.h"

namespace {

using standin::take_violations;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StandinRulesOfSeveral : public ::testing::Test {
 protected:
  struct OnGpu {
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    void* memory = nullptr;
  };

  void SetUp() override {
    gpus_before_ = std::exchange(standin::behaviour().gpus, 2);
    for (int gpu = 0; gpu < 2; ++gpu) {
      ASSERT_EQ(cudaSetDevice(gpu), cudaSuccess);
      OnGpu& own = on_[gpu];
      ASSERT_EQ(cudaStreamCreateWithFlags(&own.stream, cudaStreamNonBlocking), cudaSuccess);
      ASSERT_EQ(cudaEventCreate(&own.event), cudaSuccess);
      ASSERT_EQ(cudaMalloc(&own.memory, 64), cudaSuccess);
    }
    cudaSetDevice(0);
  }
  void TearDown() override {
    for (int gpu = 0; gpu < 2; ++gpu) {
      cudaSetDevice(gpu);
      cudaDeviceSynchronize();
      cudaFree(on_[gpu].memory);
      cudaEventDestroy(on_[gpu].event);
      cudaStreamDestroy(on_[gpu].stream);
    }
    cudaSetDevice(0);
    standin::behaviour().gpus = gpus_before_;
  }
  static void expect_violation(const char* part) {
    EXPECT_THAT(take_violations(), ElementsAre(HasSubstr(part)));
  }

  OnGpu on_[2];
  int gpus_before_ = 1;
};

TEST_F(StandinRulesOfSeveral, EachThreadHasACurrentGpuOfItsOwn) {
  cudaSetDevice(1);
  int other = -1;
  std::thread([&] { cudaGetDevice(&other); }).join();
  int own = -1;
  cudaGetDevice(&own);
  EXPECT_EQ(own, 1);
  EXPECT_EQ(other, 0);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  (void)cudaGetLastError();
}

TEST_F(StandinRulesOfSeveral, WorkIsPutOnStreamsOfTheCurrentGpu) {
  const auto kernel = [] {};
  standin::launch("kernel", kernel, dim3(1), dim3(32), 0, on_[1].stream);
  expect_violation("kernel of GPU 1 while GPU 0 is current");
  cudaMemsetAsync(on_[1].memory, 0, 0, on_[1].stream);
  expect_violation("cudaMemsetAsync of GPU 1");
  cudaLaunchHostFunc(
      on_[1].stream, [](void*) {}, nullptr);
  expect_violation("cudaLaunchHostFunc on a stream of GPU 1");
  cudaStreamSynchronize(on_[1].stream);
  EXPECT_EQ(cudaStreamBeginCapture(on_[1].stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(on_[1].stream, &graph);
  cudaGraphDestroy(graph);
  expect_violation("cudaStreamBeginCapture on a stream of GPU 1");
}

TEST_F(StandinRulesOfSeveral, AnEventIsRecordedOnItsOwnGpu) {
  EXPECT_NE(cudaEventRecord(on_[0].event, on_[1].stream), cudaSuccess);
  expect_violation("event of GPU 0 on a stream of GPU 1");
  EXPECT_EQ(cudaEventRecord(on_[1].event, on_[1].stream), cudaSuccess);
  expect_violation("cudaEventRecord on a stream of GPU 1 while GPU 0 is current");
}

TEST_F(StandinRulesOfSeveral, StreamsWaitForEventsOfOtherGpus) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    standin::set_seed(seed);
    std::string seen;
    standin::enqueue(
        on_[0].stream, [&] { seen += '1'; }, "a letter");
    cudaEventRecord(on_[0].event, on_[0].stream);
    EXPECT_EQ(cudaStreamWaitEvent(on_[1].stream, on_[0].event, 0), cudaSuccess);
    cudaSetDevice(1);
    standin::enqueue(
        on_[1].stream, [&] { seen += '2'; }, "a letter");
    EXPECT_EQ(cudaStreamSynchronize(on_[1].stream), cudaSuccess);
    cudaSetDevice(0);
    EXPECT_EQ(seen, "12");
  }
  EXPECT_THAT(take_violations(), IsEmpty());
}

TEST_F(StandinRulesOfSeveral, TimesAreBetweenEventsOfOneGpu) {
  for (int gpu = 0; gpu < 2; ++gpu) {
    cudaSetDevice(gpu);
    cudaEventRecord(on_[gpu].event, on_[gpu].stream);
    cudaEventSynchronize(on_[gpu].event);
  }
  float milliseconds = 0;
  EXPECT_NE(cudaEventElapsedTime(&milliseconds, on_[0].event, on_[1].event), cudaSuccess);
  expect_violation("between GPUs 0 and 1");
}

TEST_F(StandinRulesOfSeveral, SynchronisingAGpuIsNotForOthers) {
  bool late = false;
  for (std::uint64_t seed = 0; seed < 50 && !late; ++seed) {
    standin::set_seed(seed);
    bool ran = false;
    standin::enqueue(
        on_[0].stream, [&] { ran = true; }, "work");
    cudaSetDevice(1);
    cudaDeviceSynchronize();
    late = !ran;
    cudaSetDevice(0);
    cudaDeviceSynchronize();
    EXPECT_TRUE(ran);
  }
  EXPECT_TRUE(late);
}

TEST_F(StandinRulesOfSeveral, CopiesAreOfMemoryOfTheStreamsGpu) {
  void *own = nullptr, *portable = nullptr;
  ASSERT_EQ(cudaHostAlloc(&own, 64, cudaHostAllocDefault), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(&portable, 64, cudaHostAllocPortable), cudaSuccess);
  const auto copy = [&](int gpu, int of, void* host) {
    return cudaMemcpyAsync(on_[of].memory, host, 64, cudaMemcpyHostToDevice, on_[gpu].stream);
  };
  EXPECT_EQ(copy(0, 0, own), cudaSuccess);
  EXPECT_EQ(copy(1, 1, portable), cudaSuccess) << "whichever GPU is current";
  EXPECT_THAT(take_violations(), IsEmpty());
  EXPECT_NE(copy(0, 1, portable), cudaSuccess);
  expect_violation("of another GPU");
  EXPECT_NE(copy(1, 1, own), cudaSuccess) << "pinned for GPU 0 alone";
  expect_violation("of another GPU");
  cudaFreeHost(own);
  cudaFreeHost(portable);
}

TEST_F(StandinRulesOfSeveral, MemoryIsCountedOnItsGpu) {
  const auto free_of = [](int gpu) {
    std::size_t free = 0, total = 0;
    cudaSetDevice(gpu);
    cudaMemGetInfo(&free, &total);
    cudaSetDevice(0);
    return free;
  };
  const std::size_t before[] = {free_of(0), free_of(1)};
  cudaSetDevice(1);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 8 << 20), cudaSuccess);
  EXPECT_EQ(free_of(0), before[0]);
  EXPECT_EQ(free_of(1), before[1] - (8 << 20));
  cudaFree(memory);
  EXPECT_EQ(free_of(1), before[1]);
}

/// What lies on one GPU cannot be reached by work of another, where memory is protected.
TEST_F(StandinRulesOfSeveral, MemoryOfAnotherGpuIsOutOfReach) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ::setenv("STANDIN_PROTECT", "1", 1);  // for the process that dies
  EXPECT_DEATH(
      {
        void* memory = nullptr;
        cudaMalloc(&memory, 64);
        cudaSetDevice(1);
        standin::enqueue(
            on_[1].stream, [=] { *static_cast<volatile int*>(memory) = 1; }, "a write");
        cudaDeviceSynchronize();
      },
      "");
  ::unsetenv("STANDIN_PROTECT");
}

TEST_F(StandinRulesOfSeveral, HandlesBelongToTheGpuTheyAreMadeOn) {
  void* library = ::dlopen("libcudnn.so.9", RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto create = reinterpret_cast<decltype(&cudnnCreate)>(::dlsym(library, "cudnnCreate"));
  const auto set_stream =
      reinterpret_cast<decltype(&cudnnSetStream)>(::dlsym(library, "cudnnSetStream"));
  const auto destroy = reinterpret_cast<decltype(&cudnnDestroy)>(::dlsym(library, "cudnnDestroy"));
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(create(&handle), CUDNN_STATUS_SUCCESS);
  set_stream(handle, on_[0].stream);
  EXPECT_THAT(take_violations(), IsEmpty());
  set_stream(handle, on_[1].stream);
  expect_violation("handle and stream of different GPUs");
  cudaSetDevice(1);
  destroy(handle);
  expect_violation("cudnn handle of GPU 0 while GPU 1 is current");
}

}  // namespace
