// TeamSize: OpenMP's thread count of the calling thread, for as long as it lives. oneDNN reads it
// when a primitive is made, for its blocking and workspace, and when it runs.
#pragma once

#include <omp.h>

namespace tidepool::nn::cpu {

class TeamSize {
 public:
  explicit TeamSize(int threads) : outer_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~TeamSize() { omp_set_num_threads(outer_); }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  int outer_;
};

}  // namespace tidepool::nn::cpu
