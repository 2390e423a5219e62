// Runs device code on the host: each thread of a block is a fiber; threads, and blocks, take turns
// in an order drawn from a seed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace standin {

/// The thread that runs: its threadIdx, blockIdx, blockDim, gridDim.
struct ThreadPlace {
  uint3 thread{}, block{};
  dim3 block_dim, grid_dim;
};
const ThreadPlace& place();

void seed_emulator(std::uint64_t seed);

/// __syncthreads.
void block_barrier();
/// What lane `source` of the warp hands over. All 32 lanes must call it.
std::uint64_t warp_exchange(std::uint64_t value, int source);
bool warp_all(bool value);
int lane();

/// Enqueues a kernel. `identity` differs for kernels that are loaded apart.
void launch_kernel(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                   const char* name, const std::string& identity, std::function<void()> body);

/// Each thread tells where a variable of `__shared__` is before it uses it: the first of a block
/// finds rubbish there.
void shared_variable(void* start, std::size_t bytes);

}  // namespace standin
