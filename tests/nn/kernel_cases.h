// Small ops of every kind in the layouts of the CPU kernels, for tests of kernels.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nn/op_desc.h"

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

inline OpDesc make_op(OpKind kind, std::vector<TensorDesc> operands, OpDesc attributes = {}) {
  attributes.kind = kind;
  attributes.operands = std::move(operands);
  return attributes;
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
inline OpDesc window_attributes(std::int64_t window, std::int64_t stride, std::int64_t padding) {
  OpDesc desc;
  desc.window = window;
  desc.stride = stride;
  desc.padding = padding;
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
  const OpDesc attributes = window_attributes(s.window, s.stride, s.padding);
  std::vector<OpDesc> ops = {make_op(OpKind::conv_forward, {x, weight, y}, attributes),
                             make_op(OpKind::conv_backward_weights, {x, y, weight}, attributes)};
  if (!first) {
    ops.push_back(make_op(OpKind::conv_backward_data, {y, in_layout(weight, Layout::OIhw16o16i), x},
                          attributes));
  }
  return ops;
}

inline std::vector<OpDesc> batch_norms(const TensorDesc& x) {
  const TensorDesc c{{x.dims[1]}};
  OpDesc statistics;
  statistics.statistics_count = 12;
  return {make_op(OpKind::batch_norm_forward, {x, c, c, x, c, c}),
          make_op(OpKind::batch_norm_backward, {x, x, c, c, c, x, c, c}),
          in_place(make_op(OpKind::batch_norm_backward, {x, x, c, c, c, c, c})),
          make_op(OpKind::batch_norm_statistics, {c, c, c, c}, statistics),
          make_op(OpKind::batch_norm_inference, {x, c, c, c, c, x})};
}

inline std::vector<OpDesc> relus_and_dropouts(const TensorDesc& x) {
  OpDesc drop;
  drop.drop_rate = 0.4F;
  drop.random_key = 11;
  drop.first_sample = 5;
  const TensorDesc mask = as_type(x, ElementType::u8);
  return {make_op(OpKind::relu_forward, {x, x}),
          in_place(make_op(OpKind::relu_forward, {x})),
          make_op(OpKind::relu_backward, {x, x, x}),
          in_place(make_op(OpKind::relu_backward, {x, x})),
          make_op(OpKind::dropout_forward, {x, control_block(), x, mask}, drop),
          in_place(make_op(OpKind::dropout_forward, {x, control_block()}, drop)),
          make_op(OpKind::dropout_backward, {x, mask, x}, drop),
          in_place(make_op(OpKind::dropout_backward, {x, control_block()}, drop)),
          reads_forward(make_op(OpKind::relu_backward, {x, x, x}), {x})};
}

/// Backward only without padding: random indices are valid there.
inline std::vector<OpDesc> max_pools(const TensorDesc& x, const OpDesc& attributes) {
  TensorDesc y = x;
  for (const std::size_t i : {2, 3}) {
    y.dims[i] = (x.dims[i] + 2 * attributes.padding - attributes.window) / attributes.stride + 1;
  }
  const TensorDesc index = as_type(y, ElementType::u8);
  std::vector<OpDesc> ops = {make_op(OpKind::max_pool_forward, {x, y, index}, attributes)};
  if (attributes.padding == 0) {
    const OpDesc backward = make_op(OpKind::max_pool_backward, {y, index, x}, attributes);
    ops.push_back(backward);
    ops.push_back(reads_forward(backward, {x, y}));
  }
  return ops;
}

inline std::vector<OpDesc> adds(const TensorDesc& x) {
  return {make_op(OpKind::add_forward, {x, x, x}), in_place(make_op(OpKind::add_forward, {x, x}))};
}

inline std::vector<OpDesc> avg_pools(const TensorDesc& x, std::int64_t window,
                                     std::int64_t stride) {
  TensorDesc y = x;
  for (const std::size_t i : {2, 3}) y.dims[i] = (x.dims[i] - window) / stride + 1;
  const OpDesc attributes = window_attributes(window, stride, 0);
  return {make_op(OpKind::avg_pool_forward, {x, y}, attributes),
          make_op(OpKind::avg_pool_backward, {y, x}, attributes),
          reads_forward(make_op(OpKind::avg_pool_backward, {y, x}, attributes), {x, y})};
}

inline std::vector<OpDesc> linears(std::int64_t batch, std::int64_t in, std::int64_t out) {
  const TensorDesc x{{batch, in}}, weight{{out, in}}, bias{{out}}, y{{batch, out}};
  return {make_op(OpKind::linear_forward, {x, weight, bias, y}),
          make_op(OpKind::linear_backward_data, {y, weight, x}),
          make_op(OpKind::linear_backward_weights, {x, y, weight, bias})};
}

inline std::vector<OpDesc> softmax_losses(std::int64_t batch, std::int64_t classes) {
  OpDesc attributes;
  attributes.full_batch = 2 * batch;
  const TensorDesc logits{{batch, classes}}, labels{{batch}, ElementType::i32};
  return {make_op(OpKind::softmax_loss_forward, {logits, labels, {{1}}, logits}, attributes),
          make_op(OpKind::softmax_loss_backward, {logits, labels, logits}, attributes),
          make_op(OpKind::count_correct, {logits, labels, {{1}, ElementType::i32}})};
}

inline OpDesc sgd(const TensorDesc& weight) {
  OpDesc attributes;
  attributes.weight_decay = 5e-4F;
  return make_op(OpKind::sgd_update, {weight, control_block(), weight, weight}, attributes);
}

inline OpDesc adamw(const TensorDesc& weight) {
  OpDesc attributes;
  attributes.weight_decay = 0.01F;
  attributes.epsilon = 1e-8F;
  return make_op(OpKind::adamw_update, {weight, control_block(), weight, weight, weight},
                 attributes);
}

inline std::vector<OpDesc> reorders() {
  const TensorDesc weight{{32, 48, 3, 3}, ElementType::f32, Layout::OIhw16i16o};
  const TensorDesc odd_weight{{20, 24, 1, 1}, ElementType::f32, Layout::OIhw16i16o};
  const TensorDesc odd = blocked(3, 20, 5, 4);
  const auto reorder = [](const TensorDesc& from, Layout to) {
    return make_op(OpKind::reorder, {from, in_layout(from, to)});
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
      std::string name = to_string(op.kind);
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
    add(adds(x));
  }
  add(max_pools(blocked(3, 32, 8, 8), window_attributes(2, 2, 0)));
  add(max_pools(blocked(1, 16, 5, 5), window_attributes(2, 2, 0)));
  add(max_pools(blocked(2, 20, 7, 7), window_attributes(3, 2, 0)));
  add(max_pools(blocked(3, 20, 7, 7), window_attributes(3, 2, 1)));
  add(max_pools(blocked(2, 16, 6, 6), window_attributes(3, 1, 1)));
  add(avg_pools(blocked(3, 32, 8, 8), 8, 8));
  add(avg_pools(blocked(2, 20, 7, 8), 2, 2));
  add(avg_pools(blocked(3, 16, 7, 7), 3, 2));
  add(avg_pools(blocked(1, 20, 6, 6), 2, 3));
  add(linears(5, 64, 10));
  add(linears(7, 33, 17));
  add(linears(1, 512, 100));
  add(softmax_losses(7, 10));
  add(softmax_losses(33, 1000));
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
