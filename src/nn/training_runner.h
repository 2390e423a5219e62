// TrainingRunner: runs the ops of a TrainingProgram for whatever walks its program: device ops by
// kernels, host ops by a data set. Keeps the persistent tensors between runs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "nn/data/dataset.h"
#include "nn/data/sampler.h"
#include "nn/training_program.h"
#include "runtime/op_runner.h"

namespace tidepool::nn {

struct TrainingSettings {
  std::uint64_t seed = 1;  ///< of initial values, sample order and dropout
  /// Of the iteration number; called on the host stream's thread.
  std::function<float(std::int64_t)> learning_rate = [](std::int64_t) { return 0.05F; };
  std::function<std::uint32_t(std::int64_t)> guards = [](std::int64_t) { return ~0U; };
  /// Iteration number of the run's iteration 0.
  std::int64_t first_iteration = 0;
};

/// Threads: device ops and host ops may be launched at the same time from one thread each. load,
/// store, losses and value are for before and after a run.
class TrainingRunner final : public OpRunner {
 public:
  /// Makes all kernels, on the calling thread: what they depend on (the number of OpenMP threads)
  /// must be as it will be where they run. Program, kernel list and data set must outlive the
  /// runner. Fails when they do not fit together.
  static Result<std::unique_ptr<TrainingRunner>> create(const TrainingProgram& program,
                                                        const KernelList& kernels,
                                                        const Dataset& data,
                                                        TrainingSettings settings);

  void launch(const OpCall& call, NativeStream stream) override;
  void load(TensorId tensor, std::byte* to) override;
  void store(TensorId tensor, const std::byte* from) override;

  /// Of each iteration of the run; NaN where none was collected.
  [[nodiscard]] const std::vector<float>& losses() const { return losses_; }
  /// Bytes of a persistent tensor: its initial value until the first store.
  [[nodiscard]] const std::vector<std::byte>& value(TensorId tensor) const {
    return values_[tensor];
  }

 private:
  TrainingRunner(const TrainingProgram& program, const KernelList& kernels, const Dataset& data,
                 TrainingSettings settings);

  void launch_host(const OpDesc& desc, const OpCall& call);
  /// The samples of this call's round, in `batch_`.
  void select_samples(const OpCall& call);

  const TrainingProgram& program_;
  const Dataset& data_;
  TrainingSettings settings_;
  Sampler sampler_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  ///< by op; null for host ops
  std::vector<std::vector<std::byte>> values_;    ///< by tensor; empty unless persistent
  std::vector<std::int64_t> batch_;
  std::vector<float> losses_;
};

}  // namespace tidepool::nn
