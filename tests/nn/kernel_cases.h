// Small ops of every kind in the layouts of the CPU kernels, for tests of kernels.
#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "nn/ops/op_desc.h"

namespace tidepool::nn::testing {

/// The same op, with its gradients of parameters added to what is there: all, and, where there are
/// several, the first and the last alone.
inline std::vector<OpDesc> adding(const OpDesc& desc) {
  std::vector<std::uint32_t> gradients;
  const std::vector<OperandRule> rules = desc.rules();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].gradient) gradients.push_back(1U << i);
  }
  std::vector<std::uint32_t> added = {std::accumulate(gradients.begin(), gradients.end(), 0U)};
  if (gradients.size() > 1) {
    added.push_back(gradients.front());
    added.push_back(gradients.back());
  }
  std::vector<OpDesc> made;
  for (const std::uint32_t some : added) {
    if (some == 0) continue;
    made.push_back(desc);
    made.back().added = some;
  }
  return made;
}

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

/// Of what a window slides over.
inline TensorDesc windows_of(const TensorDesc& x, const Window& w) {
  TensorDesc y = x;
  y.dims[2] = (x.dims[2] + 2 * w.padding.height - w.window.height) / w.stride + 1;
  y.dims[3] = (x.dims[3] + 2 * w.padding.width - w.window.width) / w.stride + 1;
  return y;
}

struct ConvShape {
  std::int64_t batch, in, out;
  Size2d size, window;
  std::int64_t stride;
  Size2d padding;
  std::int64_t groups = 1;

  [[nodiscard]] bool first() const { return in < 16 && groups == 1; }
  /// As a convolution layer chooses it.
  [[nodiscard]] Layout weight_layout() const {
    if (groups == 1) return first() ? Layout::Ohwi16o : Layout::OIhw16i16o;
    if (in == groups && out == groups) return Layout::Ohwi16o;
    const bool whole = in / groups % 16 == 0 && out / groups % 16 == 0;
    return whole ? Layout::OIhw16i16o : Layout::plain;
  }
};

/// Forward, backward-weights and, unless it is a first convolution (plain images), backward-data.
inline std::vector<OpDesc> convolutions(const ConvShape& s) {
  const bool first = s.first();
  const Window attributes{s.window, s.stride, s.padding};
  const TensorDesc x = in_layout(blocked(s.batch, s.in, s.size.height, s.size.width),
                                 first ? Layout::plain : Layout::nChw16c);
  TensorDesc y = in_layout(windows_of(x, attributes), Layout::nChw16c);
  y.dims[1] = s.out;
  const TensorDesc weight{{s.out, s.in / s.groups, s.window.height, s.window.width},
                          ElementType::f32,
                          s.weight_layout()};
  std::vector<OpDesc> ops = {make_op(ConvForward{attributes}, {x, weight, y}),
                             make_op(ConvBackwardWeights{attributes}, {x, y, weight})};
  if (!first) {
    const bool turned = weight.layout == Layout::OIhw16i16o;
    const TensorDesc read = turned ? in_layout(weight, Layout::OIhw16o16i) : weight;
    ops.push_back(make_op(ConvBackwardData{attributes}, {y, read, x}));
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
  const TensorDesc y = windows_of(x, attributes);
  const TensorDesc index = as_type(y, ElementType::u8);
  std::vector<OpDesc> ops = {make_op(MaxPoolForward{attributes}, {x, y, index})};
  if (attributes.padding == Size2d{0}) {
    const OpDesc backward = make_op(MaxPoolBackward{attributes}, {y, index, x});
    ops.push_back(backward);
    ops.push_back(reads_forward(backward, {x, y}));
  }
  return ops;
}

inline std::vector<OpDesc> adds(const TensorDesc& x) {
  return {make_op(AddForward{}, {x, x, x}), in_place(make_op(AddForward{}, {x, x})),
          make_op(AddForward{0.3F}, {x, x, x}), in_place(make_op(AddForward{0.3F}, {x, x}))};
}

inline std::vector<OpDesc> avg_pools(const TensorDesc& x, const Size2d& window, std::int64_t stride,
                                     const Size2d& padding = 0) {
  const Window attributes{window, stride, padding};
  const TensorDesc y = windows_of(x, attributes);
  return {make_op(AvgPoolForward{attributes}, {x, y}), make_op(AvgPoolBackward{attributes}, {y, x}),
          reads_forward(make_op(AvgPoolBackward{attributes}, {y, x}), {x, y})};
}

inline std::vector<OpDesc> channel_biases(const TensorDesc& y) {
  const TensorDesc bias{{y.dims[1]}};
  return {make_op(ChannelBiasForward{}, {y, bias}), make_op(ChannelBiasBackward{}, {y, bias})};
}

/// Of `x`, of which `channels` tells those of each input.
inline std::vector<OpDesc> concats(TensorDesc x, const std::vector<std::int64_t>& channels) {
  std::vector<TensorDesc> operands;
  std::vector<OpDesc> backward;
  std::int64_t sum = 0;
  for (const std::int64_t c : channels) {
    x.dims[1] = c;
    operands.push_back(x);
    backward.push_back(make_op(ConcatBackward{sum}, {{}, x}));
    sum += c;
  }
  x.dims[1] = sum;
  operands.push_back(x);
  std::vector<OpDesc> ops = {
      make_op(ConcatForward{static_cast<std::int64_t>(channels.size())}, operands)};
  for (OpDesc& op : backward) {
    op.operands[0] = x;
    ops.push_back(op);
  }
  return ops;
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

struct LstmCase {
  std::int64_t batch, steps, inputs, hidden;
};

/// Forward, backward data, the same in place, backward weights, and those of gradients in place.
inline std::vector<OpDesc> lstms(const LstmCase& s) {
  const std::int64_t gates = 4 * s.hidden;
  const TensorDesc x{{s.batch, s.steps, s.inputs}}, y{{s.batch, s.steps, s.hidden}};
  const TensorDesc of_x{{gates, s.inputs}}, of_y{{gates, s.hidden}}, bias{{gates}};
  const TensorDesc reserve{{s.batch, s.steps, 5 * s.hidden}}, dgates{{s.batch, s.steps, gates}};
  return {make_op(LstmForward{}, {x, of_x, of_y, bias, y, reserve}),
          make_op(LstmBackwardData{}, {y, of_x, of_y, reserve, dgates, x}),
          in_place(make_op(LstmBackwardData{}, {y, of_x, of_y, reserve, x})),
          make_op(LstmBackwardWeights{}, {x, y, dgates, of_x, of_y, bias}),
          make_op(LstmBackwardWeights{}, {x, y, reserve, of_x, of_y, bias})};
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

/// Of images with a channel for each class.
inline std::vector<OpDesc> pixel_losses(const TensorDesc& logits) {
  const LossAttributes attributes{3 * logits.dims[0]};
  const TensorDesc labels{{logits.dims[0], logits.dims[2], logits.dims[3]}, ElementType::i32};
  return {make_op(SoftmaxLossForward{attributes}, {logits, labels, {{1}}, logits}),
          make_op(SoftmaxLossBackward{attributes}, {logits, labels, logits}),
          make_op(CountCorrect{}, {logits, labels, {{1}, ElementType::i32}})};
}

inline std::vector<OpDesc> upsamplings(const TensorDesc& x, std::int64_t factor) {
  TensorDesc y = x;
  y.dims[2] *= factor;
  y.dims[3] *= factor;
  std::vector<OpDesc> ops;
  for (const bool bilinear : {false, true}) {
    ops.push_back(make_op(UpsampleForward{{factor, bilinear}}, {x, y}));
    ops.push_back(make_op(UpsampleBackward{{factor, bilinear}}, {y, x}));
  }
  return ops;
}

inline std::vector<OpDesc> squared_errors(const TensorDesc& x) {
  const LossAttributes attributes{2 * x.dims[0]};
  return {make_op(SquaredErrorForward{attributes}, {x, x, {{1}}}),
          make_op(SquaredErrorBackward{attributes}, {x, x, x})};
}

inline std::vector<OpDesc> k_means(std::int64_t points, std::int64_t clusters, std::int64_t width) {
  const TensorDesc rows{{points, width}}, means{{clusters, width}}, distances{{points}}, one{{1}};
  const TensorDesc nearest = as_type(distances, ElementType::i32);
  const TensorDesc counts{{clusters}, ElementType::i32};
  const OpDesc sums =
      make_op(KMeansAccumulate{}, {rows, nearest, distances, means, counts, one, nearest});
  return {make_op(KMeansAssign{}, {rows, means, nearest, distances}), sums, in_place(sums),
          make_op(KMeansUpdate{}, {means, counts, means})};
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

/// Each op that makes gradients also adds to them. Odd batches, channels that are no multiple of a
/// block, strides, overlapping and incomplete windows.
inline std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases;
  const auto add_one = [&](const OpDesc& op) {
    std::string name = op.name();
    if (op.in_place) name += " in place";
    if (op.reads_forward) name += " reads forward";
    if (op.added != 0) name += " adding " + std::to_string(op.added);
    for (const TensorDesc& operand : op.operands) {
      name += " ";
      for (const std::int64_t dim : operand.dims) name.append(".").append(std::to_string(dim));
    }
    cases.push_back({name, op});
  };
  const auto add = [&](const std::vector<OpDesc>& ops) {
    for (const OpDesc& op : ops) {
      add_one(op);
      for (const OpDesc& sum : adding(op)) add_one(sum);
    }
  };
  constexpr ConvShape kConvolutions[] = {
      {3, 16, 32, 8, 3, 1, 1},
      {2, 32, 16, 9, 3, 1, 1},
      {3, 20, 24, 7, 3, 1, 1},
      {1, 16, 16, 2, 3, 1, 1},
      {2, 16, 32, 8, 1, 2, 0},
      {3, 16, 48, 9, 3, 2, 1},
      {2, 32, 32, 6, 1, 1, 0},
      {3, 24, 20, 8, 1, 2, 0},
      {5, 3, 64, 8, 3, 1, 1},
      {2, 3, 32, 11, 3, 2, 1},
      {3, 3, 20, 6, 3, 1, 1},
      {2, 1, 16, 7, 5, 1, 2},
      // rectangular windows and images
      {2, 32, 16, {5, 9}, {1, 7}, 1, {0, 3}},
      {3, 20, 24, {9, 4}, {7, 1}, 1, {3, 0}},
      {2, 16, 32, 6, {1, 3}, 1, {0, 1}},
      {2, 24, 16, 5, {3, 1}, 2, {1, 0}},
      {1, 3, 16, {4, 6}, {3, 1}, 1, {1, 0}},
      // as transposed convolutions have them
      {2, 21, 21, 8, 8, 4, 2},
      {2, 32, 16, 8, 2, 2, 0},
      {3, 20, 24, {9, 8}, {5, 4}, 2, 1},
      {2, 16, 18, {5, 4}, {2, 1}, 1, 0},
      // groups: depthwise, of whole blocks, and others
      {3, 32, 32, 8, 3, 1, 1, 32},
      {2, 20, 20, 7, 3, 2, 1, 20},
      {2, 48, 48, 5, 3, 1, 1, 48},
      {1, 16, 16, 1, 3, 2, 1, 16},
      {2, 32, 64, 6, 3, 1, 1, 2},
      {2, 24, 12, 5, 3, 2, 1, 4},
      {2, 6, 12, 5, {3, 1}, 1, {1, 0}, 6},
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
  add(max_pools(blocked(2, 16, 6, 7), {{2, 3}, 2, 0}));
  add(avg_pools(blocked(3, 32, 8, 8), 8, 8));
  add(avg_pools(blocked(2, 20, 7, 8), 2, 2));
  add(avg_pools(blocked(3, 16, 7, 7), 3, 2));
  add(avg_pools(blocked(1, 20, 6, 6), 2, 3));
  add(avg_pools(blocked(3, 20, 7, 5), 3, 1, 1));
  add(avg_pools(blocked(2, 16, 8, 8), 3, 2, 1));
  add(avg_pools(blocked(2, 20, 5, 7), {5, 7}, 1));
  for (const TensorDesc& y : {blocked(3, 32, 5, 4), blocked(5, 20, 3, 3), blocked(2, 10, 1, 1)}) {
    add(channel_biases(y));
  }
  add(concats(blocked(3, 1, 5, 4), {16, 32, 16}));
  add(concats(blocked(2, 1, 3, 5), {32, 20}));
  add(concats(blocked(2, 1, 4, 4), {6, 20, 3, 16}));
  add(concats(blocked(1, 1, 1, 1), {7, 9}));
  add(linears(5, 64, 10));
  add(linears(7, 33, 17));
  add(linears(1, 512, 100));
  add(linears(100, 40, 33));
  add(linears(90, 1, 33));
  add(linears(90, 33, 1));
  add(linears(300, 64, 48));
  add(projections(5, 64, 10));
  add(projections(7, 33, 17));
  add(projections(128, 48, 40));
  add(embeddings({3, 7, 20, 1}, 11, 9));
  add(embeddings({5, 16, 48, 1}, 300, 16));
  add(embeddings({2, 130, 260, 1}, 40, 130));
  add(layer_norms(7, 33));
  add(layer_norms(40, 64));
  add(layer_norms(1, 300));
  // Few steps: what is rounded in one goes on through the others.
  for (const LstmCase& shape : {LstmCase{3, 7, 20, 12}, LstmCase{1, 1, 5, 3},
                                LstmCase{4, 9, 32, 32}, LstmCase{2, 8, 1, 40}}) {
    add(lstms(shape));
  }
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
  for (const TensorDesc& logits :
       {blocked(3, 21, 5, 4), blocked(2, 2, 7, 9), blocked(5, 16, 1, 1), blocked(1, 40, 33, 40)}) {
    add(pixel_losses(logits));
  }
  add(upsamplings(blocked(3, 20, 3, 4), 2));
  add(upsamplings(blocked(2, 16, 2, 5), 3));
  add(upsamplings(blocked(1, 5, 1, 1), 4));
  add(k_means(37, 5, 42));
  add(k_means(1, 70, 3));
  add(k_means(300, 33, 300));
  add(squared_errors(blocked(3, 20, 5, 4)));
  add(squared_errors({{7, 10}}));
  for (const TensorDesc& weight :
       {TensorDesc{{33}}, TensorDesc{{20, 24, 3, 3}, ElementType::f32, Layout::OIhw16i16o}}) {
    add({sgd(weight), adamw(weight)});
  }
  return cases;
}

inline OpDesc in_blocks_of_8(OpDesc desc) {
  for (TensorDesc& operand : desc.operands) operand.layout = in_blocks(operand.layout, 8);
  return desc;
}

/// The cases, and those that have blocks of 16 channels again in blocks of 8.
inline std::vector<OpCase> cases_in_all_blocks() {
  std::vector<OpCase> cases = all_cases();
  const std::size_t count = cases.size();
  for (std::size_t i = 0; i < count; ++i) {
    OpDesc desc = in_blocks_of_8(cases[i].desc);
    if (desc.operands == cases[i].desc.operands) continue;
    cases.push_back({cases[i].name + " in blocks of 8", std::move(desc)});
  }
  return cases;
}

/// The same op with every tensor in plain layout.
inline OpDesc plain(OpDesc desc) {
  for (TensorDesc& operand : desc.operands) operand.layout = Layout::plain;
  return desc;
}

}  // namespace tidepool::nn::testing
