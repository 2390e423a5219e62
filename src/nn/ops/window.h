// Window: what slides over an image, in convolutions and pools.
#pragma once

#include <cstdint>

namespace tidepool::nn {

/// Square.
struct Window {
  std::int64_t window = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;

  [[nodiscard]] double area() const { return static_cast<double>(window * window); }
};

}  // namespace tidepool::nn
