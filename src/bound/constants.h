// Which values are the same in every iteration.
#pragma once

#include <vector>

#include "ir/access_index.h"

namespace tidepool {

/// Per tensor and version: the value is the same in every iteration. It is where its op is not
/// random and reads nothing but such values.
class Constants {
 public:
  Constants(const Program& program, const AccessIndex& index);
  [[nodiscard]] bool is_constant(TensorId t, std::int32_t version) const;

 private:
  std::vector<std::vector<bool>> constant_;
};

}  // namespace tidepool
