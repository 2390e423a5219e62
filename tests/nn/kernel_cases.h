// Small ops of every kind in the layouts of the CPU kernels, for tests of kernels.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nn/ops/op_desc.h"

namespace tidepool::nn::testing {

struct OpCase {
  std::string name;
  OpDesc desc;
};

inline TensorDesc blocked(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  return {{n, c, h, w}, ElementType::f32, Layout::nChw16c};
}
inline TensorDesc as_type(TensorDesc desc, ElementType type) {
  desc.type = type;
  return desc;
}
inline TensorDesc in_layout(TensorDesc desc, Layout layout) {
  desc.layout = layout;
  return desc;
}
inline TensorDesc control_block() { return {{sizeof(ControlBlock)}, ElementType::u8}; }

inline OpDesc make_op(const AnyOp& op, std::vector<TensorDesc> operands) {
  return {.op = op, .operands = std::move(operands)};
}
inline OpDesc in_place(OpDesc desc) {
  desc.in_place = true;
  return desc;
}
/// `added`: the operands that come with it.
inline OpDesc reads_forward(OpDesc desc, const std::vector<TensorDesc>& added) {
  desc.reads_forward = true;
  desc.operands.insert(desc.operands.end(), added.begin(), added.end());
  return desc;
}
inline OpDesc from_sample(OpDesc desc, std::int64_t first_sample) {
  desc.first_sample = first_sample;
  return desc;
}

struct ConvShape {
  std::int64_t batch, in, out, size, window, stride, padding;
};

/// Forward, backward-weights and, unless it is a first convolution (plain images), backward-data.
inline std::vector<OpDesc> convolutions(const ConvShape& s) {
  const bool first = s.in < 16;
  const std::int64_t out_size = (s.size + 2 * s.padding - s.window) / s.stride + 1;
  const TensorDesc x =
      in_layout(blocked(s.batch, s.in, s.size, s.size), first ? Layout::plain : Layout::nChw16c);
  const TensorDesc y = blocked(s.batch, s.out, out_size, out_size);
  const TensorDesc weight{{s.out, s.in, s.window, s.window},
                          ElementType::f32,
                          first ? Layout::Ohwi16o : Layout::OIhw16i16o};
  const Window attributes{s.window, s.stride, s.padding};
  std::vector<OpDesc> ops = {make_op(ConvForward{attributes}, {x, weight, y}),
                             make_op(ConvBackwardWeights{attributes}, {x, y, weight})};
  if (!first) {
    ops.push_back(
        make_op(ConvBackwardData{attributes}, {y, in_layout(weight, Layout::OIhw16o16i), x}));
  }
  return ops;
}

inline std::vector<OpDesc> batch_norms(const TensorDesc& x) {
  const TensorDesc c{{x.dims[1]}};
  return {make_op(BatchNormForward{}, {x, c, c, x, c, c}),
          make_op(BatchNormBackward{}, {x, x, c, c, c, x, c, c}),
          in_place(make_op(BatchNormBackward{}, {x, x, c, c, c, c, c})),
          make_op(BatchNormStatistics{.values = 12}, {c, c, c, c}),
          make_op(BatchNormInference{}, {x, c, c, c, c, x})};
}

inline std::vector<OpDesc> relus_and_dropouts(const TensorDesc& x) {
  const DropoutAttributes drop{.rate = 0.4F, .random_key = 11};
  constexpr std::int64_t kFirst = 5;
  const TensorDesc mask = as_type(x, ElementType::u8);
  return {make_op(ReluForward{}, {x, x}),
          in_place(make_op(ReluForward{}, {x})),
          make_op(ReluBackward{}, {x, x, x}),
          in_place(make_op(ReluBackward{}, {x, x})),
          from_sample(make_op(DropoutForward{drop}, {x, control_block(), x, mask}), kFirst),
          from_sample(in_place(make_op(DropoutForward{drop}, {x, control_block()})), kFirst),
          from_sample(make_op(DropoutBackward{drop}, {x, mask, x}), kFirst),
          from_sample(in_place(make_op(DropoutBackward{drop}, {x, control_block()})), kFirst),
          reads_forward(make_op(ReluBackward{}, {x, x, x}), {x})};
}

inline std::vector<OpDesc> gelus(const TensorDesc& x) {
  return {make_op(GeluForward{}, {x, x}), make_op(GeluBackward{}, {x, x, x}),
          in_place(make_op(GeluBackward{}, {x, x}))};
}

/// Backward only without padding: random indices are valid there.
inline std::vector<OpDesc> max_pools(const TensorDesc& x, const Window& attributes) {
  TensorDesc y = x;
  for (const std::size_t i : {2, 3}) {
    y.dims[i] = (x.dims[i] + 2 * attributes.padding - attributes.window) / attributes.stride + 1;
  }
  const TensorDesc index = as_type(y, ElementType::u8);
  std::vector<OpDesc> ops = {make_op(MaxPoolForward{attributes}, {x, y, index})};
  if (attributes.padding == 0) {
    const OpDesc backward = make_op(MaxPoolBackward{attributes}, {y, index, x});
    ops.push_back(backward);
    ops.push_back(reads_forward(backward, {x, y}));
  }
  return ops;
}

inline std::vector<OpDesc> adds(const TensorDesc& x) {
  return {make_op(AddForward{}, {x, x, x}), in_place(make_op(AddForward{}, {x, x}))};
}

inline std::vector<OpDesc> avg_pools(const TensorDesc& x, std::int64_t window,
                                     std::int64_t stride) {
  TensorDesc y = x;
  for (const std::size_t i : {2, 3}) y.dims[i] = (x.dims[i] - window) / stride + 1;
  const Window attributes{window, stride, 0};
  return {make_op(AvgPoolForward{attributes}, {x, y}), make_op(AvgPoolBackward{attributes}, {y, x}),
          reads_forward(make_op(AvgPoolBackward{attributes}, {y, x}), {x, y})};
}

inline std::vector<OpDesc> linears(std::int64_t batch, std::int64_t in, std::int64_t out) {
  const TensorDesc x{{batch, in}}, weight{{out, in}}, bias{{out}}, y{{batch, out}};
  return {make_op(LinearForward{}, {x, weight, bias, y}),
          make_op(LinearBackwardData{}, {y, weight, x}),
          make_op(LinearBackwardWeights{}, {x, y, weight, bias})};
}

inline std::vector<OpDesc> projections(std::int64_t batch, std::int64_t in, std::int64_t out) {
  const TensorDesc x{{batch, in}}, weight{{out, in}}, y{{batch, out}};
  return {make_op(ProjectionForward{}, {x, weight, y}),
          make_op(ProjectionBackwardWeights{}, {x, y, weight})};
}

struct TextShape {
  std::int64_t batch, sequence, width, heads;
};

inline std::vector<OpDesc> embeddings(const TextShape& s, std::int64_t vocabulary,
                                      std::int64_t positions) {
  const TensorDesc tokens{{s.batch, s.sequence}, ElementType::i32};
  const TensorDesc table{{vocabulary, s.width}}, places{{positions, s.width}};
  const TensorDesc y{{s.batch, s.sequence, s.width}};
  return {make_op(EmbeddingForward{}, {tokens, table, places, y}),
          make_op(EmbeddingBackward{}, {tokens, y, table, places})};
}

inline std::vector<OpDesc> layer_norms(std::int64_t rows, std::int64_t width) {
  const TensorDesc x{{rows, width}}, column{{width}}, row{{rows}};
  return {make_op(LayerNormForward{}, {x, column, column, x, row, row}),
          make_op(LayerNormBackward{}, {x, x, row, row, column, x, column, column}),
          in_place(make_op(LayerNormBackward{}, {x, x, row, row, column, column, column}))};
}

inline std::vector<OpDesc> attention_products(const TextShape& s) {
  const TensorDesc rows{{s.batch, s.sequence, s.width}};
  const TensorDesc square{{s.batch, s.heads, s.sequence, s.sequence}};
  return {make_op(AttentionScores{{0.3F}}, {rows, rows, square}),
          make_op(AttentionMix{{0.3F}}, {square, rows, rows}),
          make_op(AttentionMixTransposed{{0.3F}}, {square, rows, rows}),
          make_op(AttentionScores{}, {rows, rows, square}),
          make_op(AttentionMix{}, {square, rows, rows}),
          make_op(AttentionMixTransposed{}, {square, rows, rows})};
}

inline std::vector<OpDesc> attention_softmaxes(const TextShape& s) {
  const TensorDesc square{{s.batch, s.heads, s.sequence, s.sequence}};
  return {make_op(AttentionSoftmaxForward{false}, {square, square}),
          in_place(make_op(AttentionSoftmaxForward{false}, {square})),
          make_op(AttentionSoftmaxForward{true}, {square, square}),
          in_place(make_op(AttentionSoftmaxForward{true}, {square})),
          make_op(AttentionSoftmaxBackward{}, {square, square, square}),
          in_place(make_op(AttentionSoftmaxBackward{}, {square, square}))};
}

inline std::vector<OpDesc> softmax_losses(std::int64_t batch, std::int64_t classes) {
  const LossAttributes attributes{2 * batch};
  const TensorDesc logits{{batch, classes}}, labels{{batch}, ElementType::i32};
  return {make_op(SoftmaxLossForward{attributes}, {logits, labels, {{1}}, logits}),
          make_op(SoftmaxLossBackward{attributes}, {logits, labels, logits}),
          make_op(CountCorrect{}, {logits, labels, {{1}, ElementType::i32}})};
}

inline std::vector<OpDesc> squared_errors(const TensorDesc& x) {
  const LossAttributes attributes{2 * x.dims[0]};
  return {make_op(SquaredErrorForward{attributes}, {x, x, {{1}}}),
          make_op(SquaredErrorBackward{attributes}, {x, x, x})};
}

inline OpDesc sgd(const TensorDesc& weight) {
  return make_op(SgdUpdate{.weight_decay = 5e-4F}, {weight, control_block(), weight, weight});
}

inline OpDesc adamw(const TensorDesc& weight) {
  return make_op(AdamwUpdate{.weight_decay = 0.01F},
                 {weight, control_block(), weight, weight, weight});
}

inline std::vector<OpDesc> reorders() {
  const TensorDesc weight{{32, 48, 3, 3}, ElementType::f32, Layout::OIhw16i16o};
  const TensorDesc odd_weight{{20, 24, 1, 1}, ElementType::f32, Layout::OIhw16i16o};
  const TensorDesc odd = blocked(3, 20, 5, 4);
  const auto reorder = [](const TensorDesc& from, Layout to) {
    return make_op(Reorder{}, {from, in_layout(from, to)});
  };
  return {reorder(weight, Layout::OIhw16o16i), reorder(odd_weight, Layout::OIhw16o16i),
          reorder(in_layout(weight, Layout::plain), Layout::OIhw16i16o),
          reorder(odd, Layout::plain), reorder(in_layout(odd, Layout::plain), Layout::nChw16c)};
}

/// Odd batches, channels that are no multiple of 16, strides, overlapping and incomplete windows.
inline std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](const std::vector<OpDesc>& ops) {
    for (const OpDesc& op : ops) {
      std::string name = op.name();
      if (op.in_place) name += " in place";
      if (op.reads_forward) name += " reads forward";
      for (const TensorDesc& operand : op.operands) {
        name += " ";
        for (const std::int64_t dim : operand.dims) name.append(".").append(std::to_string(dim));
      }
      cases.push_back({name, op});
    }
  };
  constexpr ConvShape kConvolutions[] = {
      {3, 16, 32, 8, 3, 1, 1}, {2, 32, 16, 9, 3, 1, 1}, {3, 20, 24, 7, 3, 1, 1},
      {1, 16, 16, 2, 3, 1, 1}, {2, 16, 32, 8, 1, 2, 0}, {3, 16, 48, 9, 3, 2, 1},
      {2, 32, 32, 6, 1, 1, 0}, {3, 24, 20, 8, 1, 2, 0}, {5, 3, 64, 8, 3, 1, 1},
      {2, 3, 32, 11, 3, 2, 1}, {3, 3, 20, 6, 3, 1, 1},  {2, 1, 16, 7, 5, 1, 2},
  };
  for (const ConvShape& shape : kConvolutions) add(convolutions(shape));
  add(reorders());
  const TensorDesc activations[] = {
      blocked(3, 32, 5, 4), blocked(5, 20, 3, 3), {{7, 40}}, {{6, 48}}};
  for (const TensorDesc& x : activations) {
    add(batch_norms(x));
    add(relus_and_dropouts(x));
    add(gelus(x));
    add(adds(x));
  }
  add(max_pools(blocked(3, 32, 8, 8), {2, 2, 0}));
  add(max_pools(blocked(1, 16, 5, 5), {2, 2, 0}));
  add(max_pools(blocked(2, 20, 7, 7), {3, 2, 0}));
  add(max_pools(blocked(3, 20, 7, 7), {3, 2, 1}));
  add(max_pools(blocked(2, 16, 6, 6), {3, 1, 1}));
  add(avg_pools(blocked(3, 32, 8, 8), 8, 8));
  add(avg_pools(blocked(2, 20, 7, 8), 2, 2));
  add(avg_pools(blocked(3, 16, 7, 7), 3, 2));
  add(avg_pools(blocked(1, 20, 6, 6), 2, 3));
  add(linears(5, 64, 10));
  add(linears(7, 33, 17));
  add(linears(1, 512, 100));
  add(projections(5, 64, 10));
  add(projections(7, 33, 17));
  add(embeddings({3, 7, 20, 1}, 11, 9));
  add(embeddings({5, 16, 48, 1}, 300, 16));
  add(embeddings({2, 130, 260, 1}, 40, 130));
  add(layer_norms(7, 33));
  add(layer_norms(40, 64));
  add(layer_norms(1, 300));
  for (const TextShape& shape :
       {TextShape{3, 7, 20, 2}, TextShape{1, 16, 48, 3}, TextShape{5, 33, 32, 4},
        TextShape{2, 1, 6, 2}, TextShape{2, 130, 24, 1}}) {
    add(attention_products(shape));
    add(attention_softmaxes(shape));
  }
  for (const TensorDesc& x : {TensorDesc{{3, 7, 20}}, TensorDesc{{2, 3, 5, 5}}}) {
    add(relus_and_dropouts(x));
    add(gelus(x));
    add(adds(x));
  }
  add(softmax_losses(7, 10));
  add(softmax_losses(33, 1000));
  add(squared_errors(blocked(3, 20, 5, 4)));
  add(squared_errors({{7, 10}}));
  for (const TensorDesc& weight :
       {TensorDesc{{33}}, TensorDesc{{20, 24, 3, 3}, ElementType::f32, Layout::OIhw16i16o}}) {
    add({sgd(weight), adamw(weight)});
  }
  return cases;
}

/// The same op with every tensor in plain layout.
inline OpDesc plain(OpDesc desc) {
  for (TensorDesc& operand : desc.operands) operand.layout = Layout::plain;
  return desc;
}

}  // namespace tidepool::nn::testing
