// ProgramWriter: appends tensors and ops to a TrainingProgram and keeps what planners see and what
// kernels see in step.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nn/training_program.h"

namespace tidepool::nn {

/// A tensor as one op sees it. The shape may differ from the tensor's own (a view of the same
/// bytes).
struct Operand {
  TensorId tensor = kNone;
  TensorDesc desc;
};

class ProgramWriter {
 public:
  /// Both must outlive the writer.
  ProgramWriter(TrainingProgram& out, const KernelList& kernels) : out_(out), kernels_(kernels) {}

  Operand tensor(std::string name, TensorDesc desc, TensorKind kind, bool persistent = false);
  /// `desc` without operands; they are those given here.
  void op(std::string name, OpDesc desc, std::span<const Operand> operands);
  void op(std::string name, OpDesc desc, std::initializer_list<Operand> operands) {
    op(std::move(name), std::move(desc), std::span(operands.begin(), operands.size()));
  }

  [[nodiscard]] const std::string& name_of(TensorId tensor) const {
    return out_.program.tensors[tensor].name;
  }
  [[nodiscard]] bool name_taken(const std::string& name) const;

 private:
  TrainingProgram& out_;
  const KernelList& kernels_;
};

}  // namespace tidepool::nn
