#include "nn/op_desc.h"

#include <array>
#include <cassert>
#include <cmath>

namespace tidepool::nn {
namespace {

constexpr std::int64_t kBlock = 16;

constexpr std::int64_t round_up(std::int64_t value) { return align_up(value, kBlock); }

/// The dims with trailing ones up to four.
std::array<std::int64_t, 4> four_dims(const TensorDesc& desc) {
  assert(desc.dims.size() <= 4);
  std::array<std::int64_t, 4> dims{1, 1, 1, 1};
  for (std::size_t i = 0; i < desc.dims.size(); ++i) dims[i] = desc.dims[i];
  return dims;
}

Bytes element_bytes(ElementType type) { return type == ElementType::u8 ? 1 : 4; }

/// Without the operands that reads_forward adds.
std::string_view own_accesses(OpKind kind, bool in_place) {
  switch (kind) {
    case OpKind::conv_forward:
    case OpKind::conv_backward_data:
    case OpKind::conv_backward_weights:
    case OpKind::max_pool_backward:
    case OpKind::linear_backward_data:
    case OpKind::softmax_loss_backward:
    case OpKind::count_correct:
      return "rrw";
    case OpKind::reorder:
    case OpKind::avg_pool_forward:
    case OpKind::avg_pool_backward:
      return "rw";
    case OpKind::batch_norm_forward:
      return "rrrwww";
    case OpKind::batch_norm_backward:
      return in_place ? "rurrrww" : "rrrrrwww";
    case OpKind::batch_norm_inference:
      return "rrrrrw";
    case OpKind::batch_norm_statistics:
    case OpKind::sgd_update:
      return "rruu";
    case OpKind::adamw_update:
      return "rruuu";
    case OpKind::relu_forward:
      return in_place ? "u" : "rw";
    case OpKind::relu_backward:
      return in_place ? "ru" : "rrw";
    case OpKind::add_forward:
      return in_place ? "ur" : "rrw";
    case OpKind::max_pool_forward:
      return "rww";
    case OpKind::dropout_forward:
      return in_place ? "ur" : "rrww";
    case OpKind::dropout_backward:
      return in_place ? "ur" : "rrw";
    case OpKind::linear_forward:
      return "rrrw";
    case OpKind::linear_backward_weights:
    case OpKind::softmax_loss_forward:
      return "rrww";
    case OpKind::feed_images:
    case OpKind::feed_labels:
    case OpKind::feed_control:
      return "w";
    case OpKind::collect_loss:
    case OpKind::collect_count:
      return "r";
  }
  assert(false);
  return "";
}

}  // namespace

std::int64_t TensorDesc::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

Bytes TensorDesc::bytes() const {
  if (layout == Layout::plain) return elements() * element_bytes(type);
  auto padded = four_dims(*this);
  if (layout != Layout::nChw16c) padded[0] = round_up(padded[0]);
  if (layout != Layout::Ohwi16o) padded[1] = round_up(padded[1]);
  return padded[0] * padded[1] * padded[2] * padded[3] * element_bytes(type);
}

std::int64_t TensorDesc::offset(std::int64_t a, std::int64_t b, std::int64_t c,
                                std::int64_t d) const {
  const auto [A, B, C, D] = four_dims(*this);
  assert(a >= 0 && a < A && b >= 0 && b < B && c >= 0 && c < C && d >= 0 && d < D);
  const std::int64_t a_block = a / kBlock, a_in = a % kBlock;
  const std::int64_t b_block = b / kBlock, b_in = b % kBlock;
  const std::int64_t b_blocks = round_up(B) / kBlock;
  switch (layout) {
    case Layout::plain:
      return ((a * B + b) * C + c) * D + d;
    case Layout::nChw16c:
      return (((a * b_blocks + b_block) * C + c) * D + d) * kBlock + b_in;
    case Layout::OIhw16i16o:
      return ((((a_block * b_blocks + b_block) * C + c) * D + d) * kBlock + b_in) * kBlock + a_in;
    case Layout::OIhw16o16i:
      return ((((a_block * b_blocks + b_block) * C + c) * D + d) * kBlock + a_in) * kBlock + b_in;
    case Layout::Ohwi16o:
      return (((a_block * C + c) * D + d) * B + b) * kBlock + a_in;
  }
  assert(false);
  return 0;
}

const char* to_string(OpKind kind) {
  switch (kind) {
    case OpKind::conv_forward:
      return "conv_forward";
    case OpKind::conv_backward_data:
      return "conv_backward_data";
    case OpKind::conv_backward_weights:
      return "conv_backward_weights";
    case OpKind::reorder:
      return "reorder";
    case OpKind::batch_norm_forward:
      return "batch_norm_forward";
    case OpKind::batch_norm_backward:
      return "batch_norm_backward";
    case OpKind::batch_norm_inference:
      return "batch_norm_inference";
    case OpKind::batch_norm_statistics:
      return "batch_norm_statistics";
    case OpKind::relu_forward:
      return "relu_forward";
    case OpKind::relu_backward:
      return "relu_backward";
    case OpKind::add_forward:
      return "add_forward";
    case OpKind::max_pool_forward:
      return "max_pool_forward";
    case OpKind::max_pool_backward:
      return "max_pool_backward";
    case OpKind::avg_pool_forward:
      return "avg_pool_forward";
    case OpKind::avg_pool_backward:
      return "avg_pool_backward";
    case OpKind::dropout_forward:
      return "dropout_forward";
    case OpKind::dropout_backward:
      return "dropout_backward";
    case OpKind::linear_forward:
      return "linear_forward";
    case OpKind::linear_backward_data:
      return "linear_backward_data";
    case OpKind::linear_backward_weights:
      return "linear_backward_weights";
    case OpKind::softmax_loss_forward:
      return "softmax_loss_forward";
    case OpKind::softmax_loss_backward:
      return "softmax_loss_backward";
    case OpKind::count_correct:
      return "count_correct";
    case OpKind::sgd_update:
      return "sgd_update";
    case OpKind::adamw_update:
      return "adamw_update";
    case OpKind::feed_images:
      return "feed_images";
    case OpKind::feed_labels:
      return "feed_labels";
    case OpKind::feed_control:
      return "feed_control";
    case OpKind::collect_loss:
      return "collect_loss";
    case OpKind::collect_count:
      return "collect_count";
  }
  assert(false);
  return "";
}

std::string OpDesc::accesses() const {
  std::string letters(own_accesses(kind, in_place));
  if (reads_forward) {
    assert(kind == OpKind::relu_backward || kind == OpKind::max_pool_backward ||
           kind == OpKind::avg_pool_backward);
    letters += kind == OpKind::relu_backward ? "r" : "rr";
  }
  return letters;
}

double OpDesc::flops() const {
  const auto elements = [this](std::size_t operand) {
    return static_cast<double>(operands[operand].elements());
  };
  const auto dim = [this](std::size_t operand, std::size_t index) {
    return static_cast<double>(operands[operand].dims[index]);
  };
  switch (kind) {
    // Every output position of a convolution takes one multiply-add per weight of its filter.
    case OpKind::conv_forward:
      return 2 * elements(1) * dim(2, 0) * dim(2, 2) * dim(2, 3);
    case OpKind::conv_backward_data:
      return 2 * elements(1) * dim(0, 0) * dim(0, 2) * dim(0, 3);
    case OpKind::conv_backward_weights:
      return 2 * elements(2) * dim(1, 0) * dim(1, 2) * dim(1, 3);
    case OpKind::linear_forward:
    case OpKind::linear_backward_data:
      return 2 * elements(1) * dim(0, 0);
    case OpKind::linear_backward_weights:
      return 2 * elements(2) * dim(0, 0);
    // The others are bound by memory; these counts are per element.
    case OpKind::batch_norm_forward:
      return 7 * elements(0);
    case OpKind::batch_norm_backward:
      return 11 * elements(0);
    case OpKind::batch_norm_inference:
      return 2 * elements(0);
    case OpKind::max_pool_forward:
    case OpKind::avg_pool_forward:
      return elements(1) * static_cast<double>(window * window);
    case OpKind::avg_pool_backward:
      return elements(0) * static_cast<double>(window * window);
    case OpKind::max_pool_backward:
      return elements(0);
    case OpKind::sgd_update:
      return 6 * elements(2);
    case OpKind::adamw_update:
      return 14 * elements(2);
    case OpKind::softmax_loss_forward:
      return 5 * elements(0);
    case OpKind::batch_norm_statistics:
      return 6 * elements(0);
    case OpKind::relu_forward:
    case OpKind::relu_backward:
    case OpKind::add_forward:
    case OpKind::dropout_forward:
    case OpKind::dropout_backward:
    case OpKind::softmax_loss_backward:
    case OpKind::count_correct:
      return elements(0);
    case OpKind::reorder:
    case OpKind::feed_images:
    case OpKind::feed_labels:
    case OpKind::feed_control:
    case OpKind::collect_loss:
    case OpKind::collect_count:
      return 0;
  }
  assert(false);
  return 0;
}

Bytes OpDesc::traffic() const {
  const std::string letters = accesses();
  assert(letters.size() == operands.size());
  Bytes total = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    total += operands[i].bytes() * (letters[i] == 'u' ? 2 : 1);
  }
  return total;
}

AdamwFactors adamw_factors(const OpDesc& desc, const ControlBlock& control) {
  const auto t = static_cast<double>(control.iteration) + 1;
  const auto rate = static_cast<double>(control.learning_rate);
  const auto beta1 = static_cast<double>(desc.beta1), beta2 = static_cast<double>(desc.beta2);
  return {static_cast<float>(1 - rate * static_cast<double>(desc.weight_decay)),
          static_cast<float>(rate / (1 - std::pow(beta1, t))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)))};
}

std::uint32_t dropout_threshold(float rate) {
  assert(rate >= 0 && rate < 1);
  return static_cast<std::uint32_t>(static_cast<double>(rate) * 0x1.0p32);
}

}  // namespace tidepool::nn
