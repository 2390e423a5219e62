// A stand-in for the CUDA runtime on the host: what its parts share, and what tests steer it with.
//
// It keeps CUDA's documented rules of order, of capturing and of several GPUs, and nothing else of
// a GPU. What it cannot show: what the real libraries compute and offer, a GPU's memory model
// (a race that needs two pieces of work at once is seen only as an order), streams that truly
// overlap, limits of a GPU (registers, occupancy), speed.
//
// Of several GPUs each host thread has a current one, 0 at first. Streams, events, handles and
// memory belong to the one that is current when they are made. Work may be put on a stream, and a
// handle be used, only while its GPU is current; waits for events and copies may be for others. A
// copy is between the host and memory of its stream's GPU: for others CUDA's documentation has no
// word.
//
// Work of different streams, and nodes of graphs, run in an order drawn from a seed, one piece at a
// time, while the calling thread waits, so that a seed always gives the same order. How far work
// runs behind the calls is drawn too: from at once to not before somebody waits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace standin {

// ---- For tests

/// Everything from here on is drawn from `seed`. The first is STANDIN_SEED, or 1.
void set_seed(std::uint64_t seed);

/// Rules that were broken since the last call. A process that ends with some left exits with 97.
std::vector<std::string> take_violations();

/// The call `function` (as "cudaMalloc") number `after` from now on returns `error`. A sticky one
/// is what every later call returns too, as after a fault in a kernel.
void fail_call(const std::string& function, cudaError_t error, int after = 0, bool sticky = false);
void forget_failures();
/// What nobody can wait for ends the process.
void wait_for_ever();
bool is_capturing(cudaStream_t stream);
/// Executable graphs there are.
int live_graphs();
/// Calls of cudaMalloc and cudaHostAlloc so far that gave memory.
int allocations();
/// Bytes of the largest that cudaMalloc gave.
std::size_t largest_device_allocation();

/// How the machine and the libraries differ from the usual. The first is read from the environment.
struct Behaviour {
  int gpus = 1;                   ///< STANDIN_GPUS, at most kMostGpus
  bool different_gpus = false;    ///< STANDIN_DIFFERENT_GPUS: the last is of another name
  int driver_version = 0;         ///< STANDIN_DRIVER, as 12040; 0: the runtime's own
  bool no_deterministic = false;  ///< STANDIN_CUDNN=no-deterministic: for gradients of convolutions
  bool other_algorithms = false;  ///< STANDIN_CUDNN=other-algorithms: fewer, in another order
  bool larger_workspaces = false;  ///< STANDIN_CUDNN=larger-workspaces
};
Behaviour& behaviour();
inline constexpr int kMostGpus = 8;

// ---- For the stand-ins of libraries

/// The calling thread's.
int current_gpu();
int gpu_of(cudaStream_t stream);
/// A violation unless `gpu` is current.
void require_current(int gpu, const char* what);

/// `format` as printf's. Printed at once, too.
[[gnu::format(printf, 1, 2)]] void violation(const char* format, ...);
/// Puts work on a stream, whose GPU is current, or into the graph being captured. `what` is a
/// literal.
void enqueue(cudaStream_t stream, std::function<void()> work, const char* what);
/// What is used for the first time may allocate or synchronise: a violation while `stream`
/// captures.
void first_use(cudaStream_t stream, const std::string& what);
/// A violation unless the bytes lie in one allocation of the current GPU's memory.
void require_device_range(const void* start, std::size_t bytes, const char* what);
/// Takes or gives back memory of a GPU that the libraries use for themselves.
void count_device_memory(int gpu, std::int64_t bytes);

/// Floats as products in TF32 see them, with 10 bits behind the point; as they are unless
/// `rounded`.
inline std::vector<float> as_tf32(const float* values, std::size_t count, bool rounded) {
  std::vector<float> result(values, values + count);
  if (!rounded) return result;
  for (float& value : result) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x1000U) & ~0x1fffU;
    std::memcpy(&value, &bits, sizeof bits);
  }
  return result;
}

}  // namespace standin
