// DnnlKernel: a Kernel whose algorithms are short sequences of oneDNN primitives. Primitives and
// memory objects are made once, under the TeamSize they run under; a run only sets addresses.
#pragma once

#include <dnnl.hpp>
#include <string>
#include <vector>

#include "nn/kernel.h"
#include "nn/ops/op_desc.h"

namespace tidepool::nn::cpu {

const dnnl::engine& dnnl_engine();
/// Holds no state: execution happens on the calling thread and its team.
const dnnl::stream& dnnl_stream();
/// The same shape, type and order of elements as `desc`.
dnnl::memory::desc dnnl_desc(const TensorDesc& desc);
/// Scratchpads are part of the caller's workspace.
const dnnl::primitive_attr& dnnl_attributes();

/// What an argument of a primitive is: an operand of the op, or a range of the workspace.
struct DnnlPlace {
  int operand = -1;            ///< or -1
  Bytes workspace_offset = 0;  ///< used when there is no operand
};

struct DnnlArgument {
  int name = 0;  ///< DNNL_ARG_...
  dnnl::memory::desc desc;
  DnnlPlace place;
};

/// One algorithm.
class DnnlSequence {
 public:
  /// A range of the workspace for a tensor that lives during the run.
  DnnlPlace temporary(const dnnl::memory::desc& desc);
  /// Appends a primitive and reserves its scratchpad.
  void add(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& primitive_desc,
           std::vector<DnnlArgument> arguments);

  [[nodiscard]] Bytes workspace() const { return workspace_; }
  void run(std::span<std::byte* const> pointers, std::byte* workspace);

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl::memory> memories;
    std::vector<DnnlPlace> places;           ///< of each memory
    std::vector<dnnl_exec_arg_t> arguments;  ///< names with the handles of `memories`
  };
  std::vector<Step> steps_;
  Bytes workspace_ = 0;
};

class DnnlKernel final : public Kernel {
 public:
  /// Made and run with so many threads.
  explicit DnnlKernel(int threads) : threads_(threads) {}
  void add(std::string name, DnnlSequence sequence);

  [[nodiscard]] std::span<const KernelAlgorithm> algorithms() const override { return algorithms_; }
  void run(int algorithm, std::span<std::byte* const> pointers, std::byte* workspace,
           NativeStream stream) override;

 private:
  int threads_;
  std::vector<KernelAlgorithm> algorithms_;
  std::vector<DnnlSequence> sequences_;
};

/// A kernel with one algorithm of one primitive.
std::unique_ptr<Kernel> make_dnnl_kernel(const KernelContext& context,
                                         const dnnl::primitive& primitive,
                                         const dnnl::primitive_desc_base& primitive_desc,
                                         std::vector<DnnlArgument> arguments);

}  // namespace tidepool::nn::cpu
