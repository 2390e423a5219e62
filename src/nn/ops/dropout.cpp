#include "nn/ops/dropout.h"

#include <cassert>

namespace tidepool::nn {

std::uint32_t dropout_threshold(float rate) {
  assert(rate >= 0 && rate < 1);
  return static_cast<std::uint32_t>(static_cast<double>(rate) * 0x1.0p32);
}

}  // namespace tidepool::nn
