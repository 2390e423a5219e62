// cuDNN and cuBLAS, loaded when they are first needed: a program with the CUDA device in it starts
// on machines without them and can say what is missing. The CUDA runtime itself is linked in.
#pragma once

#include <cublas_v2.h>
#include <cudnn.h>

#include <string>

// Every function of the two libraries that this project calls.
#define TIDEPOOL_CUDNN_FUNCTIONS(X)                 \
  X(cudnnGetVersion)                                \
  X(cudnnGetCudartVersion)                          \
  X(cudnnGetErrorString)                            \
  X(cudnnGetLastErrorString)                        \
  X(cudnnCreate)                                    \
  X(cudnnDestroy)                                   \
  X(cudnnSetStream)                                 \
  X(cudnnCreateTensorDescriptor)                    \
  X(cudnnDestroyTensorDescriptor)                   \
  X(cudnnSetTensor4dDescriptor)                     \
  X(cudnnCreateFilterDescriptor)                    \
  X(cudnnDestroyFilterDescriptor)                   \
  X(cudnnSetFilter4dDescriptor)                     \
  X(cudnnCreateConvolutionDescriptor)               \
  X(cudnnDestroyConvolutionDescriptor)              \
  X(cudnnSetConvolution2dDescriptor)                \
  X(cudnnSetConvolutionMathType)                    \
  X(cudnnSetConvolutionGroupCount)                  \
  X(cudnnGetConvolutionForwardAlgorithm_v7)         \
  X(cudnnGetConvolutionBackwardDataAlgorithm_v7)    \
  X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)  \
  X(cudnnGetConvolutionForwardWorkspaceSize)        \
  X(cudnnGetConvolutionBackwardDataWorkspaceSize)   \
  X(cudnnGetConvolutionBackwardFilterWorkspaceSize) \
  X(cudnnConvolutionForward)                        \
  X(cudnnConvolutionBackwardData)                   \
  X(cudnnConvolutionBackwardFilter)                 \
  X(cudnnBatchNormalizationForwardTraining)         \
  X(cudnnBatchNormalizationForwardInference)        \
  X(cudnnBatchNormalizationBackward)                \
  X(cudnnCreatePoolingDescriptor)                   \
  X(cudnnDestroyPoolingDescriptor)                  \
  X(cudnnSetPooling2dDescriptor)                    \
  X(cudnnPoolingForward)                            \
  X(cudnnPoolingBackward)                           \
  X(cudnnSoftmaxForward)

#define TIDEPOOL_CUBLAS_FUNCTIONS(X) \
  X(cublasCreate_v2)                 \
  X(cublasDestroy_v2)                \
  X(cublasSetStream_v2)              \
  X(cublasSetWorkspace_v2)           \
  X(cublasSetMathMode)               \
  X(cublasGetProperty)               \
  X(cublasGetStatusString)           \
  X(cublasSgemm_v2)

namespace tidepool::cuda {

// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define TIDEPOOL_DECLARE_FUNCTION(name) decltype(&::name) name = nullptr;
struct Cudnn {
  TIDEPOOL_CUDNN_FUNCTIONS(TIDEPOOL_DECLARE_FUNCTION)
};
struct Cublas {
  TIDEPOOL_CUBLAS_FUNCTIONS(TIDEPOOL_DECLARE_FUNCTION)
};
#undef TIDEPOOL_DECLARE_FUNCTION

/// The loaded libraries; throw DeviceError when one is missing or lacks a function.
const Cudnn& cudnn();
const Cublas& cublas();

/// What is missing, in words; empty when both libraries are there.
std::string missing_libraries();

/// As "13.1.0"; throw as above.
std::string cublas_version();
/// As "9.13.0 for CUDA 13.0".
std::string cudnn_version();

}  // namespace tidepool::cuda
