#include "nn/data/synthetic_masks.h"

#include <cassert>
#include <cstring>

#include "base/random.h"

namespace tidepool::nn {
namespace {

constexpr std::size_t kImages = 0;  ///< the field
constexpr float kColour = 1.5F;     ///< half width of the uniform colours
constexpr float kGrain = 0.5F;      ///< and of the noise

/// Uniform in [-1, 1).
float even(std::uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1.0p-23F - 1.0F; }

}  // namespace

SyntheticMasks::SyntheticMasks(const ImageShape& image, std::int64_t classes, std::int64_t size,
                               std::uint64_t seed)
    : image_(image), classes_(classes), size_(size), seed_(mix64(seed)) {
  assert(image.elements() > 0 && classes > 0 && size > 0);
}

std::vector<Field> SyntheticMasks::fields() const {
  return {{"images", {{image_.channels, image_.height, image_.width}}},
          {"labels", {{image_.height, image_.width}, ElementType::i32}, classes_}};
}

std::int32_t SyntheticMasks::class_of(std::int64_t sample, std::int64_t y, std::int64_t x) const {
  const std::int64_t quarter = y * 2 / image_.height * 2 + x * 2 / image_.width;
  const std::uint64_t key = hash_combine(seed_, static_cast<std::uint64_t>(sample));
  return static_cast<std::int32_t>(hash_combine(key, static_cast<std::uint64_t>(quarter)) %
                                   static_cast<std::uint64_t>(classes_));
}

void SyntheticMasks::fill(std::int64_t sample, float* to) const {
  const std::uint64_t noise = hash_combine(seed_ + 1, static_cast<std::uint64_t>(sample));
  std::uint64_t element = 0;
  for (std::int64_t c = 0; c < image_.channels; ++c) {
    const std::uint64_t colours = hash_combine(~seed_, static_cast<std::uint64_t>(c));
    for (std::int64_t y = 0; y < image_.height; ++y) {
      for (std::int64_t x = 0; x < image_.width; ++x, ++element) {
        const auto of_class = static_cast<std::uint64_t>(class_of(sample, y, x));
        *to++ = kColour * even(hash_combine(colours, of_class)) +
                kGrain * even(hash_combine(noise, element));
      }
    }
  }
}

void SyntheticMasks::read(std::size_t field, std::int64_t sample, std::byte* to) const {
  if (field == kImages) return fill(sample, reinterpret_cast<float*>(to));
  for (std::int64_t y = 0; y < image_.height; ++y) {
    for (std::int64_t x = 0; x < image_.width; ++x, to += sizeof(std::int32_t)) {
      const std::int32_t label = class_of(sample, y, x);
      std::memcpy(to, &label, sizeof label);
    }
  }
}

}  // namespace tidepool::nn
