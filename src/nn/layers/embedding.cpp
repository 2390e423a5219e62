#include "nn/layers/embedding.h"

#include <fmt/format.h>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> Embedding::infer(InputTypes inputs) const {
  if (auto count = expect_inputs(inputs, 1); !count) return fail(count.error());
  const ValueType& tokens = inputs[0];
  if (tokens.dims.size() != 1 || tokens.type != ElementType::i32) {
    return fail(ErrorCode::usage,
                fmt::format("needs a sequence of tokens, not {}", to_string(tokens)));
  }
  if (vocabulary < 1 || width < 1) {
    return fail(ErrorCode::usage,
                fmt::format("a table of {}x{} makes no sense", vocabulary, width));
  }
  if (tokens.dims[0] > positions) {
    return fail(ErrorCode::usage,
                fmt::format("has {} positions for a sequence of {}", positions, tokens.dims[0]));
  }
  return ValueType{{tokens.dims[0], width}, ElementType::f32};
}

void Embedding::forward(const ForwardPass& f) const {
  const Operand table = f.l.add_parameter(f.id, "table", TensorDesc{{vocabulary, width}},
                                          Initialiser::small_normal, 1);
  const Operand rows = f.l.add_parameter(f.id, "positions", TensorDesc{{positions, width}},
                                         Initialiser::small_normal, 1);
  const Operand tokens = f.stored();
  f.state().inputs = {tokens};
  f.l.writer.op(f.name(".forward"), {EmbeddingForward{}}, {tokens, table, rows, f.new_output()});
}

void Embedding::backward(const BackwardPass& b) const {
  const Operand dtable = b.parameter_gradient(0);
  const Operand dpositions = b.parameter_gradient(1);
  b.l.writer.op(b.name(".backward"), {EmbeddingBackward{}},
                {b.state().inputs[0], b.d, dtable, dpositions});
  b.update(0);
  b.update(1);
}

}  // namespace tidepool::nn
