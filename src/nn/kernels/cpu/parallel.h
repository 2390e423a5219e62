// Loops over ranges, for kernels that are not oneDNN's.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

// Compiles a function for several instruction sets and picks one at start-up. Only sets without
// fused multiply-add are named, so that the bits are the same on every machine. Sanitizers cannot
// instrument the code that picks.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__x86_64__)
#define TIDEPOOL_VECTOR_CLONES
#else
#define TIDEPOOL_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#endif

namespace tidepool::nn::cpu {

/// Splits [0, count) into one range for each of `threads`, at multiples of `grain`, and calls
/// `body(begin, end)` on each.
template <class Body>
void parallel_ranges(int threads, std::int64_t count, std::int64_t grain, const Body& body) {
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t team = omp_get_num_threads();
    const std::int64_t grains = (count + grain - 1) / grain;
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t begin = std::min(count, grains * thread / team * grain);
    const std::int64_t end = std::min(count, grains * (thread + 1) / team * grain);
    if (begin < end) body(begin, end);
  }
}

/// A cache line of floats.
inline constexpr std::int64_t kFloatGrain = 16;

}  // namespace tidepool::nn::cpu
