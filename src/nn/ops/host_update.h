// Updates of what all devices share on the host, from what each of them made. Those of weights add
// the gradients in the order of the devices and do what the update op of the same name does on a
// device, to the bit; learning rate and iteration are the runner's, which would feed them to a
// device. That of running statistics does what the op of one device does for each part in turn.
#pragma once

#include <array>

#include "nn/ops/adamw.h"
#include "nn/ops/batch_norm.h"
#include "nn/ops/sgd.h"

namespace tidepool::nn {

struct HostSgdUpdate {
  SgdUpdate update;
  std::int64_t inputs = 1;  ///< gradients beside the first

  static constexpr const char* name = "host_sgd_update";
  static constexpr auto operands = std::array{updates("sum"), reads("gradient", When::each_input),
                                              updates("weight"), updates("momentum")};
  static constexpr auto role = OpRole::host_update;
  static constexpr auto random = Randomness::always;
  [[nodiscard]] double flops(Operands o) const {
    return (static_cast<double>(inputs) + 6) * count(o[0]);
  }
};

struct HostAdamwUpdate {
  AdamwUpdate update;
  std::int64_t inputs = 1;  ///< gradients beside the first

  static constexpr const char* name = "host_adamw_update";
  static constexpr auto operands =
      std::array{updates("sum"), reads("gradient", When::each_input), updates("weight"),
                 updates("first_moment"), updates("second_moment")};
  static constexpr auto role = OpRole::host_update;
  static constexpr auto random = Randomness::always;
  [[nodiscard]] double flops(Operands o) const {
    return (static_cast<double>(inputs) + 14) * count(o[0]);
  }
};

struct HostBatchNormStatistics {
  BatchNormStatistics update;
  std::int64_t inputs = 2;  ///< mean and variance of the first device, then of the next

  static constexpr const char* name = "host_batch_norm_statistics";
  static constexpr auto operands = std::array{updates("running_mean"), updates("running_variance"),
                                              reads("mean or variance", When::each_input)};
  static constexpr auto role = OpRole::host_update;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const {
    return 3 * static_cast<double>(inputs) * count(o[0]);
  }
};

}  // namespace tidepool::nn
