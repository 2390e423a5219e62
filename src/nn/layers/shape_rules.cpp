#include "nn/layers/shape_rules.h"

#include <fmt/format.h>

#include <utility>

#include "base/counted.h"

namespace tidepool::nn {
namespace {

Result<void> expect_sense(std::int64_t window, std::int64_t stride, std::int64_t padding) {
  if (window >= 1 && stride >= 1 && padding >= 0 && padding < window) return {};
  return fail(ErrorCode::usage, fmt::format("window {}, stride {}, padding {} make no sense",
                                            window, stride, padding));
}

/// Output size, in one direction, of a window that slides over `size` padded elements.
Result<std::int64_t> windows(std::int64_t size, std::int64_t window, std::int64_t stride,
                             std::int64_t padding) {
  if (auto sense = expect_sense(window, stride, padding); !sense) return fail(sense.error());
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

Result<void> expect_vectors(const ValueType& type) {
  const bool vectors = type.dims.size() == 1 || type.dims.size() == 2;
  if (vectors && type.type == ElementType::f32) return {};
  return fail(ErrorCode::usage,
              fmt::format("needs a vector or a sequence of vectors, not {}", to_string(type)));
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

Result<ValueType> unslide(InputTypes inputs, std::int64_t channels, const Window& window) {
  if (auto image = expect_image(inputs); !image) return fail(image.error());
  const auto& [size, stride, padding] = window;
  for (const auto& [side, pad] :
       {std::pair{size.height, padding.height}, std::pair{size.width, padding.width}}) {
    if (auto sense = expect_sense(side, stride, pad); !sense) return fail(sense.error());
  }
  return ValueType{{channels, (inputs[0].dims[1] - 1) * stride + size.height - 2 * padding.height,
                    (inputs[0].dims[2] - 1) * stride + size.width - 2 * padding.width},
                   ElementType::f32};
}

}  // namespace tidepool::nn
