#include "nn/kernels/cpu/threads.h"

#include <omp.h>

namespace tidepool::nn {

void set_kernel_threads(int threads) { omp_set_num_threads(threads); }

}  // namespace tidepool::nn
