// Convolutions by cuDNN, with every algorithm it supports for the shape; by our own kernel where it
// has none that repeats its bits.
#include <array>
#include <cassert>

#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/kernel_support.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::cuda_kernels_detail {
namespace {

class Filter
    : public CudnnDescriptor<cudnnFilterDescriptor_t, &cuda::Cudnn::cudnnCreateFilterDescriptor,
                             &cuda::Cudnn::cudnnDestroyFilterDescriptor> {
 public:
  explicit Filter(const TensorDesc& t) {
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnSetFilter4dDescriptor(
        get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3)));
  }
};

class Convolution : public CudnnDescriptor<cudnnConvolutionDescriptor_t,
                                           &cuda::Cudnn::cudnnCreateConvolutionDescriptor,
                                           &cuda::Cudnn::cudnnDestroyConvolutionDescriptor> {
 public:
  Convolution(const device_code::Convolution& shape, bool tf32) {
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnSetConvolution2dDescriptor(
        get(), shape.padding_height, shape.padding_width, shape.stride, shape.stride, 1, 1,
        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnSetConvolutionGroupCount(get(), shape.groups));
    // The default lets float32 convolutions run in TF32.
    TIDEPOOL_CUDA_CHECK(
        cudnn().cudnnSetConvolutionMathType(get(), tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH));
  }
};

/// One direction's types and names. cuDNN's documentation calls algorithms 0 (data) and 0 and 3
/// (weights) not deterministic; all others repeat their bits.
struct Forward {
  using Algorithm = cudnnConvolutionFwdAlgo_t;
  using Performance = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
  static constexpr std::array<const char*, kAlgorithms> kNames = {
      "implicit-gemm", "implicit-precomp-gemm", "gemm", "direct", "fft", "fft-tiling",
      "winograd",      "winograd-nonfused"};
};
struct BackwardData {
  using Algorithm = cudnnConvolutionBwdDataAlgo_t;
  using Performance = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
  static constexpr std::array<const char*, kAlgorithms> kNames = {
      "algo-0", "algo-1", "fft", "fft-tiling", "winograd", "winograd-nonfused"};
};
struct BackwardWeights {
  using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
  using Performance = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
  static constexpr std::array<const char*, kAlgorithms> kNames = {
      "algo-0", "algo-1", "fft", "algo-3", "winograd", "winograd-nonfused", "fft-tiling"};
};

template <class Roles>
device_code::Convolution shape_of(const OpDesc& desc, const Roles& roles) {
  const TensorDesc &x = desc.operands[roles.x], &y = desc.operands[roles.y];
  const auto& window = desc.get<Window>();
  device_code::Convolution s;
  s.images = dim(x, 0);
  s.channels = dim(x, 1);
  s.height = dim(x, 2);
  s.width = dim(x, 3);
  s.filters = dim(y, 1);
  s.out_height = dim(y, 2);
  s.out_width = dim(y, 3);
  s.window_height = static_cast<int>(window.window.height);
  s.window_width = static_cast<int>(window.window.width);
  s.stride = static_cast<int>(window.stride);
  s.padding_height = static_cast<int>(window.padding.height);
  s.padding_width = static_cast<int>(window.padding.width);
  s.groups = static_cast<int>(convolution_groups(x, desc.operands[roles.weight]));
  return s;
}

/// What the three directions share. Operands of a convolution are (x, weight, y) in this order of
/// roles; `x`, `weight`, `y` are where they stand among the op's operands.
template <class Direction>
class ConvolutionKernel : public CudaKernel {
 protected:
  struct Roles {
    std::size_t x, weight, y;
  };
  ConvolutionKernel(const OpDesc& desc, const Roles& roles, bool tf32)
      : CudaKernel(desc),
        x_(desc.operands[roles.x]),
        y_(desc.operands[roles.y]),
        weight_(desc.operands[roles.weight]),
        shape_(shape_of(desc, roles)),
        convolution_(shape_, tf32) {}

  /// Lists what cuDNN says it supports, in the order of its expectation, fastest first.
  /// `ask(results, returned)` gets its list, `workspace(algorithm, bytes)` an algorithm's need.
  /// Where nothing of it serves, one algorithm of our own, which takes `own_workspace` bytes.
  template <class Ask, class Workspace>
  void find_algorithms(const KernelContext& context, Ask ask, Workspace workspace,
                       Bytes own_workspace) {
    if (!context.own_convolutions) ask_cudnn(context, ask, workspace);
    if (chosen_.empty()) add_algorithm("own", own_workspace);
  }
  /// Of our own kernel.
  [[nodiscard]] bool own() const { return chosen_.empty(); }
  [[nodiscard]] typename Direction::Algorithm chosen(int algorithm) const {
    return chosen_[static_cast<std::size_t>(algorithm)];
  }
  [[nodiscard]] std::size_t workspace_of(int algorithm) const {
    return static_cast<std::size_t>(algorithms()[static_cast<std::size_t>(algorithm)].workspace);
  }

  Tensor4d x_, y_;
  Filter weight_;
  device_code::Convolution shape_;
  Convolution convolution_;

 private:
  template <class Ask, class Workspace>
  void ask_cudnn(const KernelContext& context, Ask ask, Workspace workspace) {
    // One algorithm may be listed once for each math type.
    constexpr int kMost = 4 * Direction::kAlgorithms;
    std::array<typename Direction::Performance, kMost> results{};
    int returned = 0;
    const cudnnStatus_t asked = ask(results.data(), kMost, &returned);
    if (asked == CUDNN_STATUS_NOT_SUPPORTED) return;
    TIDEPOOL_CUDA_CHECK(asked);
    std::array<bool, Direction::kAlgorithms> listed{};
    for (int i = 0; i < returned; ++i) {
      const auto& result = results[static_cast<std::size_t>(i)];
      const auto index = static_cast<std::size_t>(result.algo);
      if (result.status != CUDNN_STATUS_SUCCESS || index >= listed.size() || listed[index]) {
        continue;
      }
      const bool deterministic = result.determinism == CUDNN_DETERMINISTIC;
      if (!deterministic && !context.nondeterministic) continue;
      std::size_t bytes = 0;
      if (workspace(result.algo, &bytes) != CUDNN_STATUS_SUCCESS) continue;
      listed[index] = true;
      chosen_.push_back(result.algo);
      add_algorithm(Direction::kNames[index], static_cast<Bytes>(bytes), deterministic);
    }
  }

  std::vector<typename Direction::Algorithm> chosen_;
};

class ConvForwardKernel final : public ConvolutionKernel<Forward> {
 public:
  ConvForwardKernel(const OpDesc& desc, const KernelContext& context)
      : ConvolutionKernel(desc, {0, 1, 2}, context.tf32) {
    find_algorithms(
        context,
        [&](auto* results, int most, int* returned) {
          return cudnn().cudnnGetConvolutionForwardAlgorithm_v7(question_handle(), x_.get(),
                                                                weight_.get(), convolution_.get(),
                                                                y_.get(), most, returned, results);
        },
        [&](auto algorithm, std::size_t* bytes) {
          return cudnn().cudnnGetConvolutionForwardWorkspaceSize(question_handle(), x_.get(),
                                                                 weight_.get(), convolution_.get(),
                                                                 y_.get(), algorithm, bytes);
        },
        0);
  }

 private:
  void enqueue(int algorithm, Pointers p, std::byte* workspace, const CudaStream& s) override {
    if (own()) {
      return device_code::convolution_forward(shape_, operand(p, 0), operand(p, 1), operand(p, 2),
                                              s.stream());
    }
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnConvolutionForward(
        s.cudnn(), &kOne, x_.get(), p[0], weight_.get(), p[1], convolution_.get(),
        chosen(algorithm), workspace, workspace_of(algorithm), &kZero, y_.get(), p[2]));
  }
};

class ConvBackwardDataKernel final : public ConvolutionKernel<BackwardData> {
 public:
  ConvBackwardDataKernel(const OpDesc& desc, const KernelContext& context)
      : ConvolutionKernel(desc, {2, 1, 0}, context.tf32) {
    find_algorithms(
        context,
        [&](auto* results, int most, int* returned) {
          return cudnn().cudnnGetConvolutionBackwardDataAlgorithm_v7(
              question_handle(), weight_.get(), y_.get(), convolution_.get(), x_.get(), most,
              returned, results);
        },
        [&](auto algorithm, std::size_t* bytes) {
          return cudnn().cudnnGetConvolutionBackwardDataWorkspaceSize(
              question_handle(), weight_.get(), y_.get(), convolution_.get(), x_.get(), algorithm,
              bytes);
        },
        0);
  }

 private:
  void enqueue(int algorithm, Pointers p, std::byte* workspace, const CudaStream& s) override {
    if (own()) {
      return device_code::convolution_backward_data(shape_, operand(p, 0), operand(p, 1),
                                                    operand(p, 2), s.stream());
    }
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnConvolutionBackwardData(
        s.cudnn(), &kOne, weight_.get(), p[1], y_.get(), p[0], convolution_.get(),
        chosen(algorithm), workspace, workspace_of(algorithm), &kZero, x_.get(), p[2]));
  }
};

class ConvBackwardWeightsKernel final : public ConvolutionKernel<BackwardWeights> {
 public:
  using ConvolutionKernel::own;

  ConvBackwardWeightsKernel(const OpDesc& desc, const KernelContext& context)
      : ConvolutionKernel(desc, {0, 2, 1}, context.tf32) {
    find_algorithms(
        context,
        [&](auto* results, int most, int* returned) {
          return cudnn().cudnnGetConvolutionBackwardFilterAlgorithm_v7(
              question_handle(), x_.get(), y_.get(), convolution_.get(), weight_.get(), most,
              returned, results);
        },
        [&](auto algorithm, std::size_t* bytes) {
          return cudnn().cudnnGetConvolutionBackwardFilterWorkspaceSize(
              question_handle(), x_.get(), y_.get(), convolution_.get(), weight_.get(), algorithm,
              bytes);
        },
        device_code::convolution_backward_weights_workspace(shape_));
  }

 private:
  void enqueue(int algorithm, Pointers p, std::byte* workspace, const CudaStream& s) override {
    if (own()) {
      return device_code::convolution_backward_weights(
          shape_, operand(p, 0), operand(p, 1), operand(p, 2), reinterpret_cast<float*>(workspace),
          s.stream());
    }
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnConvolutionBackwardFilter(
        s.cudnn(), &kOne, x_.get(), p[0], y_.get(), p[1], convolution_.get(), chosen(algorithm),
        workspace, workspace_of(algorithm), desc().adds(2) ? &kOne : &kZero, weight_.get(), p[2]));
  }
};

}  // namespace

std::unique_ptr<Kernel> make_adding_convolution(const OpDesc& desc, const KernelContext& context) {
  auto kernel = std::make_unique<ConvBackwardWeightsKernel>(desc, context);
  if (kernel->own()) return nullptr;
  return kernel;
}

std::unique_ptr<Kernel> make_convolution(const OpDesc& desc, const KernelContext& context) {
  if (desc.is<ConvForward>()) return std::make_unique<ConvForwardKernel>(desc, context);
  if (desc.is<ConvBackwardData>()) return std::make_unique<ConvBackwardDataKernel>(desc, context);
  if (desc.is<ConvBackwardWeights>())
    return std::make_unique<ConvBackwardWeightsKernel>(desc, context);
  return nullptr;
}

}  // namespace tidepool::nn::cuda_kernels_detail
