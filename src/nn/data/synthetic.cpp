#include "nn/data/synthetic.h"

#include <cassert>

#include "base/random.h"

namespace tidepool::nn {
namespace {

constexpr std::int64_t kGrid = 4;  ///< cells of the pattern in each direction
constexpr float kNoise = 1.0F;     ///< half width of the uniform noise; the pattern is +1 or -1

/// Uniform in [-1, 1).
float symmetric(std::uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1.0p-23F - 1.0F; }

}  // namespace

SyntheticDataset::SyntheticDataset(const ImageShape& image, std::int64_t classes, std::int64_t size,
                                   std::uint64_t seed)
    : image_(image), classes_(classes), size_(size), seed_(mix64(seed)) {
  assert(image.elements() > 0 && classes > 0 && size > 0);
}

std::int32_t SyntheticDataset::label(std::int64_t sample) const {
  return static_cast<std::int32_t>(hash_combine(seed_, static_cast<std::uint64_t>(sample)) %
                                   static_cast<std::uint64_t>(classes_));
}

void SyntheticDataset::fill(std::int64_t sample, float* to) const {
  const std::uint64_t pattern = hash_combine(~seed_, static_cast<std::uint64_t>(label(sample)));
  const std::uint64_t noise = hash_combine(seed_ + 1, static_cast<std::uint64_t>(sample));
  std::uint64_t element = 0;
  for (std::int64_t c = 0; c < image_.channels; ++c) {
    for (std::int64_t y = 0; y < image_.height; ++y) {
      for (std::int64_t x = 0; x < image_.width; ++x, ++element) {
        const auto cell = static_cast<std::uint64_t>(
            (c * kGrid + y * kGrid / image_.height) * kGrid + x * kGrid / image_.width);
        const float sign = (hash_combine(pattern, cell) & 1) != 0 ? 1.0F : -1.0F;
        *to++ = sign + kNoise * symmetric(hash_combine(noise, element));
      }
    }
  }
}

}  // namespace tidepool::nn
