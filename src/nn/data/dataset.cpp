#include "nn/data/dataset.h"

#include <cstring>

namespace tidepool::nn {

std::vector<Field> Dataset::fields() const {
  const ImageShape shape = image();
  return {{"images", {{shape.channels, shape.height, shape.width}, ElementType::f32}},
          {"labels", {{}, ElementType::i32}, classes()}};
}

void Dataset::read(std::size_t field, std::int64_t sample, std::byte* to) const {
  if (field == 0) return fill(sample, reinterpret_cast<float*>(to));
  const std::int32_t value = label(sample);
  std::memcpy(to, &value, sizeof value);
}

}  // namespace tidepool::nn
