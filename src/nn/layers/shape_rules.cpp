#include "nn/layers/shape_rules.h"

#include <fmt/format.h>

#include "base/counted.h"

namespace tidepool::nn {
namespace {

/// Output size, in one direction, of a window that slides over `size` padded elements.
Result<std::int64_t> windows(std::int64_t size, std::int64_t window, std::int64_t stride,
                             std::int64_t padding) {
  if (window < 1 || stride < 1 || padding < 0 || padding >= window) {
    return fail(ErrorCode::usage, fmt::format("window {}, stride {}, padding {} make no sense",
                                              window, stride, padding));
  }
  if (size + 2 * padding < window) {
    return fail(ErrorCode::usage,
                fmt::format("a window of {} does not fit into {} elements with padding {}", window,
                            size, padding));
  }
  return (size + 2 * padding - window) / stride + 1;
}

}  // namespace

Result<void> expect_inputs(InputTypes inputs, std::size_t count) {
  if (inputs.size() == count) return {};
  return fail(ErrorCode::usage,
              fmt::format("takes {}, not {}", counted(count, "input"), inputs.size()));
}

Result<void> expect_rank(const ValueType& type, std::size_t rank, std::string_view what) {
  if (type.dims.size() == rank && type.type == ElementType::f32) return {};
  return fail(ErrorCode::usage, fmt::format("needs {}, not {}", what, to_string(type)));
}

Result<void> expect_image(InputTypes inputs) {
  if (auto count = expect_inputs(inputs, 1); !count) return count;
  return expect_rank(inputs[0], 3, "a value of channels x height x width");
}

Result<ValueType> same_as_input(InputTypes inputs) {
  if (auto count = expect_inputs(inputs, 1); !count) return fail(count.error());
  if (inputs[0].dims.empty() || inputs[0].type != ElementType::f32) {
    return fail(ErrorCode::usage, "needs a value of floats with channels");
  }
  return inputs[0];
}

Result<ValueType> same_shapes(InputTypes inputs) {
  if (auto count = expect_inputs(inputs, 2); !count) return fail(count.error());
  if (inputs[0] != inputs[1]) {
    return fail(ErrorCode::usage, fmt::format("needs two values of one shape, not {} and {}",
                                              to_string(inputs[0]), to_string(inputs[1])));
  }
  return same_as_input(inputs.first(1));
}

Result<ValueType> slide(InputTypes inputs, std::int64_t channels, const Window& window) {
  if (auto image = expect_image(inputs); !image) return fail(image.error());
  const auto& [size, stride, padding] = window;
  const auto height = windows(inputs[0].dims[1], size.height, stride, padding.height);
  if (!height) return fail(height.error());
  const auto width = windows(inputs[0].dims[2], size.width, stride, padding.width);
  if (!width) return fail(width.error());
  return ValueType{{channels, *height, *width}, ElementType::f32};
}

}  // namespace tidepool::nn
