// Window: what slides over an image, in convolutions and pools.
#pragma once

#include <cstdint>

namespace tidepool::nn {

/// Of a window or its padding. One number is both.
struct Size2d {
  std::int64_t height = 1;
  std::int64_t width = 1;

  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Size2d(std::int64_t side) : height(side), width(side) {}
  constexpr Size2d(std::int64_t height_in, std::int64_t width_in)
      : height(height_in), width(width_in) {}
  [[nodiscard]] constexpr std::int64_t area() const { return height * width; }
  friend bool operator==(const Size2d&, const Size2d&) = default;
};

/// It moves by one stride in both directions. Padding is added on both sides.
struct Window {
  Size2d window = 1;
  std::int64_t stride = 1;
  Size2d padding = 0;

  [[nodiscard]] double area() const { return static_cast<double>(window.area()); }
};

}  // namespace tidepool::nn
