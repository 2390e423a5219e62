#include "nn/initial_values.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

#include "base/random.h"

namespace tidepool::nn {
namespace {

/// Mean 0, variance 1: the sum of four 16-bit uniform numbers has variance 4 * (2^32 - 1) / 12.
float normal(std::uint64_t bits) {
  std::int64_t sum = std::int64_t{-2} * 65535;
  for (int i = 0; i < 4; ++i) sum += static_cast<std::int64_t>(bits >> (16 * i) & 0xffff);
  constexpr double kDeviation = 37837.22723;
  return static_cast<float>(static_cast<double>(sum) / kDeviation);
}

std::uint64_t key_of(std::uint64_t seed, const std::string& name) {
  std::uint64_t key = mix64(seed);
  for (const char c : name) key = hash_combine(key, static_cast<unsigned char>(c));
  return key;
}

template <class ValueAt>
void write_elements(const TensorDesc& desc, float* to, ValueAt value_at) {
  if (desc.layout == Layout::plain) {
    const std::int64_t count = desc.elements();
    for (std::int64_t i = 0; i < count; ++i) to[i] = value_at(i);
    return;
  }
  assert(desc.dims.size() == 4);
  const ElementOffsets offset(desc);
  std::int64_t i = 0;
  for (std::int64_t a = 0; a < desc.dims[0]; ++a) {
    for (std::int64_t b = 0; b < desc.dims[1]; ++b) {
      for (std::int64_t c = 0; c < desc.dims[2]; ++c) {
        for (std::int64_t d = 0; d < desc.dims[3]; ++d) to[offset(a, b, c, d)] = value_at(i++);
      }
    }
  }
}

/// Of place `at` in a window of so many: falls from the middle to both sides, so that windows half
/// of their size apart add up to 1 (Long et al. 2015, section 3.3).
float tent(std::int64_t at, std::int64_t size) {
  const auto half = static_cast<double>((size + 1) / 2);
  const double middle = size % 2 == 1 ? half - 1 : half - 0.5;
  return static_cast<float>(1 - std::abs(static_cast<double>(at) - middle) / half);
}

float bilinear_weight(const TensorDesc& desc, std::int64_t element) {
  const std::int64_t height = desc.dims[2], width = desc.dims[3];
  const std::int64_t pair = element / (height * width), place = element % (height * width);
  if (pair / desc.dims[1] != pair % desc.dims[1]) return 0;
  return tent(place / width, height) * tent(place % width, width);
}

}  // namespace

void write_initial_value(const Parameter& parameter, const TensorDesc& desc, std::uint64_t seed,
                         std::span<std::byte> to) {
  assert(desc.type == ElementType::f32 && static_cast<Bytes>(to.size()) == desc.bytes());
  std::fill(to.begin(), to.end(), std::byte{0});
  auto* values = reinterpret_cast<float*>(to.data());
  switch (parameter.initialiser) {
    case Initialiser::zero:
      return;
    case Initialiser::one:
      return write_elements(desc, values, [](std::int64_t) { return 1.0F; });
    case Initialiser::bilinear:
      return write_elements(desc, values, [&](std::int64_t i) { return bilinear_weight(desc, i); });
    case Initialiser::he_normal:
    case Initialiser::small_normal: {
      const std::uint64_t key = key_of(seed, parameter.name);
      const bool small = parameter.initialiser == Initialiser::small_normal;
      const auto deviation =
          small ? 0.02F
                : static_cast<float>(std::sqrt(2.0 / static_cast<double>(parameter.fan_in)));
      return write_elements(desc, values, [&](std::int64_t i) {
        return deviation * normal(hash_combine(key, static_cast<std::uint64_t>(i)));
      });
    }
  }
}

}  // namespace tidepool::nn
