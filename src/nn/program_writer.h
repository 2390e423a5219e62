// ProgramWriter: appends tensors and ops to a TrainingProgram and keeps what planners see and what
// kernels see in step.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "nn/ops/op_desc.h"
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
  /// `desc` without operands; they are those given here. A gradient of a parameter that an op has
  /// written before is added to, see Note [Sums of gradients]. Ops on the device belong to the
  /// layer and phase of the innermost Scope; those that update state to the phase `update`.
  void op(std::string name, OpDesc desc, std::span<const Operand> operands);
  void op(std::string name, OpDesc desc, std::initializer_list<Operand> operands) {
    op(std::move(name), std::move(desc), std::span(operands.begin(), operands.size()));
  }

  /// While it lives, ops belong to this layer and phase. Scopes nest.
  class Scope {
   public:
    Scope(ProgramWriter& writer, const std::string& layer, Phase phase);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ProgramWriter& writer_;
    const std::string* outer_layer_;
    Phase outer_phase_;
  };

  /// While it lives, ops have this guard. The innermost counts.
  class Guard {
   public:
    Guard(ProgramWriter& writer, std::int32_t guard) : writer_(writer), outer_(writer.guard_) {
      writer.guard_ = guard;
    }
    ~Guard() { writer_.guard_ = outer_; }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    ProgramWriter& writer_;
    std::int32_t outer_;
  };
  [[nodiscard]] std::int32_t guard() const { return guard_; }

  /// The first op that the list has no kernel for, or tensor too large for it; the program is of no
  /// use then.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  /// What follows belongs to this round, whose first sample has this place in the batch. Names of
  /// ops and of tensors that are not persistent get "@round" where there are several rounds.
  void begin_round(std::int32_t round, std::int64_t first_sample);

  /// Without the round.
  [[nodiscard]] const std::string& name_of(TensorId tensor) const { return names_[tensor]; }
  /// In this round.
  [[nodiscard]] bool name_taken(const std::string& name) const;

 private:
  [[nodiscard]] bool adds_by_itself(OpDesc desc, std::span<const Operand> operands);
  void write(std::string name, OpDesc desc, std::span<const Operand> operands);
  /// Its place in Program::layers, which its first op gives it.
  [[nodiscard]] std::int32_t layer_index();
  void add_algorithms(const OpDesc& desc, Op& op);
  void check_size(const Operand& operand);

  TrainingProgram& out_;
  const KernelList& kernels_;
  std::vector<std::string> names_;  ///< by tensor
  std::vector<bool> written_;       ///< by an op so far
  std::string suffix_;
  std::int32_t round_ = 0;
  std::int64_t first_sample_ = 0;
  std::size_t round_begin_ = 0;         ///< the first tensor of this round
  const std::string* layer_ = nullptr;  ///< of the innermost scope
  Phase phase_ = Phase::other;
  std::int32_t guard_ = kNone;                            ///< of the innermost Guard
  std::unordered_map<std::string, std::int32_t> layers_;  ///< places of those that have ops
  std::optional<Error> error_;
};

}  // namespace tidepool::nn
