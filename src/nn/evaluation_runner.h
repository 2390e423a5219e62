// EvaluationRunner: runs an evaluation program over all samples of a data set, in order.
#pragma once

#include <memory>
#include <vector>

#include "nn/program_runner.h"

namespace tidepool::nn {

struct EvaluationResult {
  double mean_loss = 0;
  double accuracy = 0;       ///< in [0, 1]: of samples, or of their answers
  std::int64_t samples = 0;  ///< both are of these
  std::int64_t answers = 1;  ///< of a sample: more than one are tokens, or pixels
  bool pixels = false;       ///< they are
};

/// Iteration i evaluates batch i modulo `iterations()`; places of the last batch beyond the end of
/// the data set hold zeros and the label -1. Threads: see ProgramRunner.
class EvaluationRunner final : public ProgramRunner {
 public:
  /// Like TrainingRunner::create. The data set may be smaller than a batch. Persistent tensors are
  /// zeros until they are taken or set.
  static Result<std::unique_ptr<EvaluationRunner>> create(const TrainingProgram& program,
                                                          const KernelList& kernels,
                                                          const SampleSource& data);

  /// Weights and running statistics by name, from a runner with the same layouts, which must
  /// outlive this: nothing is copied, a value is read there when it is loaded here.
  Result<void> take_values(const ProgramRunner& trained);

  /// Of one pass over the data set.
  [[nodiscard]] std::int64_t iterations() const { return static_cast<std::int64_t>(parts_.size()); }
  /// Of the batches that ran, each as it was the last time.
  [[nodiscard]] EvaluationResult result() const;

 private:
  /// What one batch gave.
  struct Part {
    float loss = 0;  ///< sum over its samples
    std::int32_t correct = 0;
    bool ran = false;
  };

  EvaluationRunner(const TrainingProgram& program, const KernelList& kernels,
                   const SampleSource& data);

  void launch_host(const OpDesc& desc, const OpCall& call) override;
  void write_start(TensorId tensor, std::span<std::byte> to) const override;
  /// Writes one input for the batch that starts at sample `first`.
  void feed(const Feed& feed, const OpDesc& desc, std::int64_t first, std::byte* to) const;

  std::vector<Part> parts_;  ///< of each batch
  const ProgramRunner* trained_ = nullptr;
  std::vector<TensorId> taken_;  ///< by tensor: the trained runner's; kNone: none
};

}  // namespace tidepool::nn
