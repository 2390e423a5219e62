// OpDesc: one op with everything a kernel needs to know. The contract between the training graph,
// which makes them, and the kernels, which run them. float32 unless a tensor says otherwise.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "nn/ops/adamw.h"
#include "nn/ops/add.h"
#include "nn/ops/attention.h"
#include "nn/ops/batch_norm.h"
#include "nn/ops/channel_bias.h"
#include "nn/ops/concat.h"
#include "nn/ops/convolution.h"
#include "nn/ops/dropout.h"
#include "nn/ops/embedding.h"
#include "nn/ops/gelu.h"
#include "nn/ops/hold.h"
#include "nn/ops/host.h"
#include "nn/ops/host_update.h"
#include "nn/ops/k_means.h"
#include "nn/ops/layer_norm.h"
#include "nn/ops/linear.h"
#include "nn/ops/lstm.h"
#include "nn/ops/pooling.h"
#include "nn/ops/relu.h"
#include "nn/ops/reorder.h"
#include "nn/ops/sgd.h"
#include "nn/ops/softmax_loss.h"
#include "nn/ops/squared_error.h"
#include "nn/ops/upsample.h"

namespace tidepool::nn {

/// The list of kinds.
using OpVariant = std::variant<
    ConvForward, ConvBackwardData, ConvBackwardWeights, ChannelBiasForward, ChannelBiasBackward,
    ConcatForward, ConcatBackward, Reorder, BatchNormForward, BatchNormBackward, BatchNormInference,
    BatchNormStatistics, ReluForward, ReluBackward, AddForward, GeluForward, GeluBackward,
    MaxPoolForward, MaxPoolBackward, AvgPoolForward, AvgPoolBackward, DropoutForward,
    DropoutBackward, LinearForward, LinearBackwardData, LinearBackwardWeights, SoftmaxLossForward,
    SoftmaxLossBackward, SquaredErrorForward, SquaredErrorBackward, CountCorrect, ProjectionForward,
    ProjectionBackwardWeights, EmbeddingForward, EmbeddingBackward, LayerNormForward,
    LayerNormBackward, AttentionScores, AttentionMix, AttentionMixTransposed,
    AttentionSoftmaxForward, AttentionSoftmaxBackward, UpsampleForward, UpsampleBackward,
    LstmForward, LstmBackwardData, LstmBackwardWeights, SgdUpdate, AdamwUpdate, Hold, Feed,
    FeedControl, CollectLoss, CollectCount, CollectGradient, CollectStatistics, HostSgdUpdate,
    HostAdamwUpdate, HostBatchNormStatistics, KMeansAssign, KMeansAccumulate, KMeansUpdate>;

/// A kind and its attributes. What copies and destroys it is compiled once, in op_desc.cpp.
struct AnyOp : OpVariant {
  AnyOp() noexcept;
  template <class Op>
  requires(!std::is_base_of_v<OpVariant, std::remove_cvref_t<Op>>) AnyOp(Op op)
      : OpVariant(std::in_place_type<Op>, std::move(op)) {}  // NOLINT: converts
  AnyOp(const AnyOp& other);
  AnyOp(AnyOp&& other) noexcept;
  AnyOp& operator=(const AnyOp& other);
  AnyOp& operator=(AnyOp&& other) noexcept;
  ~AnyOp();
};

namespace detail {
template <class T, class... Op>
const T* find_op(const std::variant<Op...>& op) {
  const T* found = nullptr;
  const auto look = [&]<class One>(const One*) {
    if constexpr (std::is_convertible_v<const One*, const T*>) {
      if (const One* held = std::get_if<One>(&op)) found = held;
    }
  };
  (look(static_cast<const Op*>(nullptr)), ...);
  return found;
}
}  // namespace detail

struct OpDesc {
  AnyOp op;
  bool in_place = false;               ///< see When
  bool reads_forward = false;          ///< see When
  std::vector<TensorDesc> operands{};  ///< those that are there, in the order of the declaration
  std::int64_t first_sample = 0;       ///< index of element 0's sample in the full batch (rounds)
  /// Operands, as bits, that are gradients of parameters and have those of rounds before: the op
  /// adds to them, with the bits of a sum of what is there and what it would have written.
  std::uint32_t added = 0;

  template <class Op>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<Op>(op);
  }
  /// The attributes: `T` is the kind itself or what it derives from; null when it is neither.
  template <class T>
  [[nodiscard]] const T* find() const {
    return detail::find_op<T>(op);
  }
  /// The same where it must be one.
  template <class T>
  [[nodiscard]] const T& get() const {
    return *find<T>();
  }

  [[nodiscard]] const char* name() const;       ///< of the kind
  [[nodiscard]] std::string kind_name() const;  ///< as planners and reports see it
  [[nodiscard]] OpRole role() const;
  [[nodiscard]] bool random() const;
  /// Gradients are among the first 32 operands of any kind.
  [[nodiscard]] bool adds(std::size_t operand) const {
    return operand < 32 && (added >> operand & 1U) != 0;
  }
  [[nodiscard]] bool recomputable() const { return role() == OpRole::compute; }
  /// Of the operands that are there.
  [[nodiscard]] std::vector<OperandRule> rules() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] Bytes traffic() const;  ///< bytes of operands read plus written
};

}  // namespace tidepool::nn
