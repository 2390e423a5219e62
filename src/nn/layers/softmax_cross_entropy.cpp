#include "nn/layers/softmax_cross_entropy.h"

#include <fmt/format.h>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

namespace {

/// Labels of an image have its size, others one dimension less than the logits.
bool is_image(const ValueType& logits) { return logits.dims.size() == 3; }

}  // namespace

Result<ValueType> SoftmaxCrossEntropy::infer(InputTypes inputs) const {
  if (auto count = expect_inputs(inputs, 2); !count) return fail(count.error());
  ValueType labels{inputs[0].dims, ElementType::i32};
  if (is_image(inputs[0])) {
    if (auto image = expect_image(inputs.first(1)); !image) return fail(image.error());
    labels.dims.erase(labels.dims.begin());
    if (inputs[1] != labels) {
      return fail(ErrorCode::usage,
                  fmt::format("has logits for {0} pixels and needs labels of {0}, not of {1}",
                              to_string(labels), to_string(inputs[1])));
    }
  } else {
    if (auto rows = expect_vectors(inputs[0]); !rows) {
      return fail(ErrorCode::usage, "needs a vector of logits: it " + rows.error().message);
    }
    labels.dims.pop_back();
    if (inputs[1] != labels) {
      return fail(ErrorCode::usage, "needs the labels as its second input");
    }
  }
  if (answers < 0 || answers > labels.elements()) {
    return fail(ErrorCode::usage,
                fmt::format("cannot count {} of {} labels", answers, labels.elements()));
  }
  return ValueType{{}, ElementType::f32};
}

void SoftmaxCrossEntropy::forward(const ForwardPass& f) const {
  const bool image = is_image(f.l.graph.values[f.layer().inputs[0]].type);
  const Operand logits = image ? f.activation(0) : rows_of(f.stored(0));
  Operand labels = f.stored(1);
  if (!image) labels.desc.dims = {logits.desc.dims[0]};
  const Operand loss = f.new_activation("", TensorDesc{{1}});
  const Operand probabilities = f.new_activation(".probabilities", logits.desc);
  f.set_output(loss);
  f.state().inputs = {logits, labels};
  f.state().saved = {probabilities};
  f.l.writer.op(f.name(".forward"),
                {SoftmaxLossForward{{f.l.samples_of_mean() * f.l.graph.answers}}},
                {logits, labels, loss, probabilities});
}

void SoftmaxCrossEntropy::backward(const BackwardPass& b) const {
  const Operand dlogits = b.new_input_gradient();
  b.l.writer.op(b.name(".backward"),
                {SoftmaxLossBackward{{b.l.samples_of_mean() * b.l.graph.answers}}},
                {b.state().saved[0], b.state().inputs[1],
                 dlogits.desc.dims.size() == 4 ? dlogits : rows_of(dlogits)});
  b.contribute(dlogits);
}

}  // namespace tidepool::nn
