// Threads of the CPU kernels.
#pragma once

namespace tidepool::nn {

/// Sets how many threads kernels made and run by the calling thread use (its OpenMP team size).
/// oneDNN fixes blocking and workspace sizes when a kernel is made: make a kernel under the number
/// it will run under. Results depend on this number and on nothing else.
void set_kernel_threads(int threads);

}  // namespace tidepool::nn
