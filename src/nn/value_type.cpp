#include "nn/value_type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tidepool::nn {

std::int64_t ValueType::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

std::string to_string(const ValueType& type) {
  return type.dims.empty() ? "scalar" : fmt::format("{}", fmt::join(type.dims, "x"));
}

}  // namespace tidepool::nn
