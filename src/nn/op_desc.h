// OpDesc: one op with everything a kernel needs to know. The contract between the training graph,
// which makes them, and the kernels, which run them. float32 unless a tensor says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace tidepool::nn {

enum class ElementType : std::uint8_t { f32, u8, i32 };

/// Physical order of elements. Channels of a blocked layout are padded with zeros to a multiple
/// of 16; the padding is part of the tensor's bytes.
enum class Layout : std::uint8_t {
  plain,       ///< row-major in the order of dims: NCHW, OIHW, NC, C
  nChw16c,     ///< activations, blocked by 16 channels
  OIhw16i16o,  ///< convolution weights as forward and backward-weights use them
  OIhw16o16i,  ///< convolution weights as backward-data uses them
  Ohwi16o,     ///< weights of a first convolution with few input channels
};

/// Shape, element type and physical layout of one tensor.
struct TensorDesc {
  std::vector<std::int64_t> dims;
  ElementType type = ElementType::f32;
  Layout layout = Layout::plain;

  [[nodiscard]] Bytes bytes() const;            ///< including padding
  [[nodiscard]] std::int64_t elements() const;  ///< without padding
  /// Index of a logical element in units of elements; for 4-d layouts.
  [[nodiscard]] std::int64_t offset(std::int64_t a, std::int64_t b, std::int64_t c,
                                    std::int64_t d) const;
  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

/// The accesses of each kind, in order (r = read, w = write, u = update). `[in place]` is the
/// variant with fewer operands, told apart by OpDesc::in_place; `[+ ...]` names the operands that
/// OpDesc::reads_forward adds at the end. Their bytes change no result.
enum class OpKind : std::uint8_t {
  conv_forward,           ///< r x, r weight, w y                       (no bias)
  conv_backward_data,     ///< r dy, r weight (backward layout), w dx
  conv_backward_weights,  ///< r x, r dy, w dweight
  reorder,                ///< r from, w to: same dims, other layout
  batch_norm_forward,     ///< r x, r scale, r shift, w y, w mean, w variance  (batch statistics)
  batch_norm_backward,    ///< r x, r dy, r mean, r variance, r scale, w dx, w dscale, w dshift
                          ///< [in place: r x, u d, r mean, r variance, r scale, w dscale, w dshift]
  batch_norm_inference,   ///< r x, r scale, r shift, r running_mean, r running_variance, w y
  batch_norm_statistics,  ///< r mean, r variance, u running_mean, u running_variance
  relu_forward,           ///< r x, w y                    [in place: u y]
  relu_backward,          ///< r y, r dy, w dx             [in place: r y, u d]   [+ r x]
  add_forward,            ///< r a, r b, w y               [in place: u a, r b]
                          ///< (also sums gradients)
  max_pool_forward,       ///< r x, w y, w index           (index: u8 position in the window)
  max_pool_backward,      ///< r dy, r index, w dx         [+ r x, r y]
  avg_pool_forward,       ///< r x, w y                    (no padding)
  avg_pool_backward,      ///< r dy, w dx                  [+ r x, r y]
  dropout_forward,        ///< r x, r control, w y, w mask [in place: u y, r control]
                          ///< (mask: u8, 1 where kept)
  dropout_backward,       ///< r dy, r mask, w dx          [in place: u d, r control]
  linear_forward,         ///< r x, r weight, r bias, w y
  linear_backward_data,   ///< r dy, r weight, w dx
  linear_backward_weights,  ///< r x, r dy, w dweight, w dbias
  softmax_loss_forward,     ///< r logits, r labels, w loss, w probabilities
                            ///< (a sample with a negative label adds nothing, here and below)
  softmax_loss_backward,    ///< r probabilities, r labels, w dlogits
  count_correct,            ///< r logits, r labels, w count (one i32: samples whose label has the
                            ///< largest logit, of equal ones the first)
  sgd_update,               ///< r gradient, r control, u weight, u momentum
  adamw_update,             ///< r gradient, r control, u weight, u m, u v
  feed_images,              ///< host: w images
  feed_labels,              ///< host: w labels
  feed_control,             ///< host: w control
  collect_loss,             ///< host: r loss
  collect_count,            ///< host: r count
};

const char* to_string(OpKind kind);

struct OpDesc {
  OpKind kind{};
  bool in_place = false;
  /// The backward op also takes the input and output of its forward op, as cuDNN's does.
  bool reads_forward = false;
  std::vector<TensorDesc> operands;  ///< one per access, in the order above

  // Attributes; each kind uses those that concern it.
  std::int64_t window = 0, stride = 1, padding = 0;  ///< convolution, pooling (square)
  float epsilon = 1e-5F;                             ///< batch norm, AdamW
  float statistics_momentum = 0.1F;   ///< weight of the new value in running statistics
  std::int64_t statistics_count = 0;  ///< values behind one batch variance (N*H*W), for the
                                      ///< unbiased running variance
  float drop_rate = 0;                ///< probability of a zero; the rest is scaled by 1/(1 - rate)
  std::uint64_t random_key = 0;       ///< names the op in the counter-based generator; a dropout's
                                      ///< forward and backward share it
  std::int64_t first_sample = 0;      ///< index of element 0's sample in the full batch (rounds)
  std::int64_t full_batch = 0;        ///< the loss is the mean over this many samples
  float momentum = 0.9F, weight_decay = 0;  ///< SGD: m = momentum*m + (g + decay*w); w -= lr*m
  /// AdamW (Loshchilov and Hutter 2019), in iteration t - 1: w -= lr*decay*w;
  /// m = beta1*m + (1 - beta1)*g; v = beta2*v + (1 - beta2)*g*g;
  /// w -= lr * m/(1 - beta1^t) / (sqrt(v/(1 - beta2^t)) + epsilon)
  float beta1 = 0.9F, beta2 = 0.999F;

  /// One letter per operand: r, w or u, as listed with OpKind.
  [[nodiscard]] std::string accesses() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] Bytes traffic() const;  ///< bytes of operands read plus written
};

/// What changes between iterations, read by kernels from device memory so that no kernel argument
/// does. Copied in at the start of each iteration.
struct ControlBlock {
  std::uint64_t iteration = 0;
  std::uint64_t seed = 0;
  float learning_rate = 0;
  std::uint32_t guards = 0;  ///< bit g: ops with guard g run
  std::uint8_t reserved[40] = {};
};
static_assert(sizeof(ControlBlock) == 64);

/// What an AdamW update takes from the iteration number and the learning rate, the same on every
/// device: w = keep * w - step * m / (sqrt(v) * root + epsilon).
struct AdamwFactors {
  float keep = 1;  ///< 1 - lr*decay
  float step = 0;  ///< lr / (1 - beta1^t)
  float root = 1;  ///< 1 / sqrt(1 - beta2^t)
};
AdamwFactors adamw_factors(const OpDesc& desc, const ControlBlock& control);

/// The keep decision of dropout for one element: a pure function of its arguments, on every
/// device. `element` is the logical (plain layout) index in the full batch.
///   keep iff dropout_bits(dropout_key(seed, key, iteration), element) >= rate * 2^32
constexpr std::uint64_t dropout_key(std::uint64_t seed, std::uint64_t random_key,
                                    std::uint64_t iteration) {
  return hash_combine(hash_combine(mix64(seed), random_key), iteration);
}
/// rate * 2^32, for a rate in [0, 1).
std::uint32_t dropout_threshold(float rate);
/// 32 random bits of one element under a key from `dropout_key`.
constexpr std::uint32_t dropout_bits(std::uint64_t key, std::uint32_t element) {
  // Two rounds of a 32-bit multiply-xorshift (Wellons' lowbias32) with the 64-bit key injected
  // before each: vectorises, and passes the uniformity test in tests/nn.
  std::uint32_t x = element ^ static_cast<std::uint32_t>(key);
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  x ^= static_cast<std::uint32_t>(key >> 32);
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

}  // namespace tidepool::nn
