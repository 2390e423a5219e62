// What the shape rules of several layers ask. Messages do not name the layer.
#pragma once

#include <string_view>

#include "nn/layers/layer_kind.h"
#include "nn/ops/window.h"

namespace tidepool::nn {

Result<void> expect_inputs(InputTypes inputs, std::size_t count);
/// A value of floats of this rank; `what` says so in words.
Result<void> expect_rank(const ValueType& type, std::size_t rank, std::string_view what);
/// A vector of floats, or a sequence of vectors.
Result<void> expect_vectors(const ValueType& type);
/// One input of channels x height x width.
Result<void> expect_image(InputTypes inputs);
/// One input of floats with channels; the output is like it.
Result<ValueType> same_as_input(InputTypes inputs);
/// Two inputs of floats with channels, of one shape; the output is like them.
Result<ValueType> same_shapes(InputTypes inputs);
/// One image, over which a window slides.
Result<ValueType> slide(InputTypes inputs, std::int64_t channels, const Window& window);
/// One image, as what such a window would have slid over.
Result<ValueType> unslide(InputTypes inputs, std::int64_t channels, const Window& window);

}  // namespace tidepool::nn
