// ValueType: shape and element type of one sample of a value, whatever it holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/ops/tensor_desc.h"

namespace tidepool::nn {

/// {C, H, W} or {C}, or {} for one number.
struct ValueType {
  std::vector<std::int64_t> dims;
  ElementType type = ElementType::f32;
  friend bool operator==(const ValueType&, const ValueType&) = default;

  [[nodiscard]] std::int64_t elements() const;
};

/// For people: "64x32x32", "512", "scalar".
std::string to_string(const ValueType& type);

}  // namespace tidepool::nn
