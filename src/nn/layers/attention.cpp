#include "nn/layers/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {
namespace {

/// 1 / sqrt(columns of a head)
AttentionScale scale_of(const Attention& spec, const Operand& rows) {
  const auto columns = static_cast<double>(rows.desc.dims[2] / spec.heads);
  return {static_cast<float>(1 / std::sqrt(columns))};
}

/// Writes the gradient of the scores and returns it.
Operand backward_scores(const BackwardPass& b) {
  const Operand& p = b.state().saved[0];
  const std::string name = "grad:" + b.layer().name;
  const Operand dp = b.l.writer.tensor(name + ".probabilities", p.desc, TensorKind::gradient);
  b.l.writer.op(b.name(".backward_probabilities"), {AttentionScores{}},
                {b.d, b.state().inputs[2], dp});
  OpDesc softmax{AttentionSoftmaxBackward{}};
  softmax.in_place = b.in_place();
  if (softmax.in_place) {
    b.l.writer.op(b.name(".backward_softmax"), softmax, {p, dp});
    return dp;
  }
  Operand ds = b.l.writer.tensor(name + ".scores", p.desc, TensorKind::gradient);
  b.l.writer.op(b.name(".backward_softmax"), softmax, {p, dp, ds});
  return ds;
}

}  // namespace

Result<ValueType> Attention::infer(InputTypes inputs) const {
  if (auto count = expect_inputs(inputs, 3); !count) return fail(count.error());
  for (const ValueType& input : inputs) {
    if (auto rank = expect_rank(input, 2, "sequences of vectors"); !rank) return fail(rank.error());
    if (input != inputs[0]) {
      return fail(ErrorCode::usage,
                  fmt::format("needs queries, keys and values of one shape, not {} and {}",
                              to_string(inputs[0]), to_string(input)));
    }
  }
  if (heads < 1 || inputs[0].dims[1] % heads != 0) {
    return fail(ErrorCode::usage,
                fmt::format("cannot cut a width of {} into {} heads", inputs[0].dims[1], heads));
  }
  return inputs[0];
}

void Attention::forward(const ForwardPass& f) const {
  const Operand q = f.stored(0), v = f.stored(2);
  const Operand k = f.l.apart(f.stored(1), q, f.name(".copy"));
  const std::int64_t tokens = q.desc.dims[1];
  const TensorDesc square{{q.desc.dims[0], heads, tokens, tokens}};
  const Operand scores = f.new_activation(".scores", square);
  f.l.writer.op(f.name(".scores"), {AttentionScores{scale_of(*this, q)}}, {q, k, scores});
  OpDesc softmax{AttentionSoftmaxForward{causal}};
  softmax.in_place = f.l.options.storage == Storage::in_place;
  Operand p = scores;
  if (softmax.in_place) {
    f.l.writer.op(f.name(".softmax"), softmax, {p});
  } else {
    p = f.new_activation(".probabilities", square);
    f.l.writer.op(f.name(".softmax"), softmax, {scores, p});
  }
  f.l.writer.op(f.name(".mix"), {AttentionMix{}}, {p, v, f.new_output()});
  f.state().inputs = {q, k, v};
  f.state().saved = {p};
}

void Attention::backward(const BackwardPass& b) const {
  const std::vector<Operand>& inputs = b.state().inputs;
  if (b.input_needs_gradient(2)) {
    const Operand dv = b.new_input_gradient(2);
    b.l.writer.op(b.name(".backward_values"), {AttentionMixTransposed{}},
                  {b.state().saved[0], b.d, dv});
    b.contribute(dv, 2);
  }
  if (!b.input_needs_gradient(0) && !b.input_needs_gradient(1)) return;
  const AttentionScale scale = scale_of(*this, inputs[0]);
  const Operand ds = backward_scores(b);
  if (b.input_needs_gradient(1)) {
    const Operand dk = b.new_input_gradient(1);
    b.l.writer.op(b.name(".backward_keys"), {AttentionMixTransposed{scale}}, {ds, inputs[0], dk});
    b.contribute(dk, 1);
  }
  if (b.input_needs_gradient(0)) {
    const Operand dq = b.new_input_gradient(0);
    b.l.writer.op(b.name(".backward_queries"), {AttentionMix{scale}}, {ds, inputs[1], dq});
    b.contribute(dq, 0);
  }
}

}  // namespace tidepool::nn
