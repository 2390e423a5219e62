#include "nn/layers/softmax_cross_entropy.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> SoftmaxCrossEntropy::infer(InputTypes inputs) const {
  if (auto count = expect_inputs(inputs, 2); !count) return fail(count.error());
  if (auto rank = expect_rank(inputs[0], 1, "a vector of logits"); !rank) {
    return fail(rank.error());
  }
  if (inputs[1] != ValueType{{}, ElementType::i32}) {
    return fail(ErrorCode::usage, "needs the labels as its second input");
  }
  return ValueType{{}, ElementType::f32};
}

void SoftmaxCrossEntropy::forward(const ForwardPass& f) const {
  const Operand logits = f.stored(0), labels = f.stored(1);
  const Operand loss = f.new_activation("", TensorDesc{{1}});
  const Operand probabilities = f.new_activation(".probabilities", logits.desc);
  f.set_output(loss);
  f.state().inputs = {logits, labels};
  f.state().saved = {probabilities};
  f.l.writer.op(f.name(".forward"), {SoftmaxLossForward{{f.l.samples_of_mean()}}},
                {logits, labels, loss, probabilities});
}

void SoftmaxCrossEntropy::backward(const BackwardPass& b) const {
  const Operand dlogits = b.new_input_gradient();
  b.l.writer.op(b.name(".backward"), {SoftmaxLossBackward{{b.l.samples_of_mean()}}},
                {b.state().saved[0], b.state().inputs[1], dlogits});
  b.contribute(dlogits);
}

}  // namespace tidepool::nn
