// ProgramRunner: what running a TrainingProgram takes whatever it is for: device ops go to kernels,
// persistent tensors are kept between runs. Host ops are the derived class's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nn/data/sample_source.h"
#include "nn/state_store.h"
#include "nn/training_program.h"
#include "runtime/op_runner.h"

namespace tidepool::nn {

struct Feed;

/// A persistent tensor for those who save and restore it.
struct PersistentTensor {
  std::string name;
  Bytes bytes = 0;
  TensorKind kind = TensorKind::weight;
};

/// Threads: device ops and host ops may be launched at the same time from one thread each. All
/// else is for before and after a run.
class ProgramRunner : public OpRunner {
 public:
  void launch(const OpCall& call, NativeStream stream) final;
  /// The runner keeps no copy in memory of a value that it has given away: until it is stored again
  /// the value is where the plan has it.
  void load(TensorId tensor, std::byte* to) final;
  void store(TensorId tensor, const std::byte* from) final;

  [[nodiscard]] const TrainingProgram& program() const { return program_; }
  /// In the order of the program.
  [[nodiscard]] std::vector<PersistentTensor> persistent_tensors() const;
  /// Values are kept in a file of that folder, which has no name, instead of in memory. Before the
  /// first is stored or set.
  Result<void> keep_values_in(const std::string& folder) { return values_.use_folder(folder); }
  /// Bytes of a persistent tensor in its own layout, padding included. Throws std::logic_error
  /// while a plan has the value.
  [[nodiscard]] std::vector<std::byte> value(TensorId tensor) const;
  [[nodiscard]] Result<std::vector<std::byte>> value(std::string_view name) const;
  /// The same into memory of the caller's.
  void read_value(TensorId tensor, std::span<std::byte> to) const;
  /// Fails when the program has no persistent tensor of this name and size.
  Result<void> set_value(std::string_view name, std::span<const std::byte> bytes);
  [[nodiscard]] Result<TensorId> find(std::string_view name) const;

  // For what is too large to be had twice: a part of a stored value.
  void read_part(TensorId tensor, Bytes offset, std::span<std::byte> to) const {
    values_.read(tensor, offset, to);
  }
  void write_part(TensorId tensor, Bytes offset, std::span<const std::byte> from) {
    values_.write(tensor, offset, from);
  }

 protected:
  /// Makes all kernels. `data` fits, see check_fit; all three
  /// must outlive the runner.
  ProgramRunner(const TrainingProgram& program, const KernelList& kernels,
                const SampleSource& data);

  /// `call.pointers` has the one operand of a host op.
  virtual void launch_host(const OpDesc& desc, const OpCall& call) = 0;
  /// What a persistent tensor starts with: zeros, unless the derived class knows better. Any
  /// thread.
  virtual void write_start(TensorId tensor, std::span<std::byte> to) const;
  /// No value is stored any more: each is again what it starts with.
  void forget_values();
  /// Whether the kernels offer all that the program was built with: its plans count on these
  /// workspaces. They may offer more (`workspace_limit`).
  [[nodiscard]] Result<void> check_algorithms() const;
  [[nodiscard]] const SampleSource& data() const { return data_; }
  /// Writes what a feed op writes for one sample. Throws std::out_of_range for a class the program
  /// does not tell apart: kernels index with it. -1 is no class.
  void read_sample(const Feed& feed, std::int64_t sample, std::byte* to) const;

 private:
  void require_classes(const ProgramInput& input, std::int64_t sample, const std::byte* data) const;

  const TrainingProgram& program_;
  const SampleSource& data_;
  std::vector<std::size_t> fields_;               ///< of `data_`, by input of the program
  std::vector<std::unique_ptr<Kernel>> kernels_;  ///< by op; null for host ops
  std::vector<std::vector<int>> algorithms_;      ///< by op: the kernel's, by the program's
  StateStore values_;                             ///< of what was stored or set
  std::vector<char> away_;                        ///< by tensor: its value was given away
};

/// Whether a program for `purpose` was built for these kernels and can read this data.
Result<void> check_fit(const TrainingProgram& program, Purpose purpose, const KernelList& kernels,
                       const SampleSource& data);

}  // namespace tidepool::nn
