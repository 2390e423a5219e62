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

  /// What follows belongs to this round, whose first sample has this place in the batch. Names of
  /// ops and of tensors that are not persistent get "@round" where there are several rounds.
  void begin_round(std::int32_t round, std::int64_t first_sample);

  /// Without the round.
  [[nodiscard]] const std::string& name_of(TensorId tensor) const { return names_[tensor]; }
  /// In this round.
  [[nodiscard]] bool name_taken(const std::string& name) const;

 private:
  TrainingProgram& out_;
  const KernelList& kernels_;
  std::vector<std::string> names_;  ///< by tensor
  std::string suffix_;
  std::int32_t round_ = 0;
  std::int64_t first_sample_ = 0;
  std::size_t round_begin_ = 0;  ///< the first tensor of this round
};

}  // namespace tidepool::nn
