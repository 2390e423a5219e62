// Size of one image sample, shared by models and data sets.
#pragma once

#include <cstdint>

namespace tidepool::nn {

struct ImageShape {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  [[nodiscard]] std::int64_t elements() const { return channels * height * width; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

}  // namespace tidepool::nn
