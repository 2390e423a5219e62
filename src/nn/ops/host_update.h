// Updates of weights on the host, from the gradients of several devices. They add the gradients in
// the order of the devices and do what the update op of the same name does on a device, to the bit.
// Learning rate and iteration are the runner's, which would feed them to a device.
#pragma once

#include <array>

#include "nn/ops/adamw.h"
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

}  // namespace tidepool::nn
