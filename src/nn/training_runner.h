// TrainingRunner: runs a training program on samples of data.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nn/data/sampler.h"
#include "nn/host_update.h"
#include "nn/program_runner.h"

namespace tidepool::nn {

struct ControlBlock;

struct TrainingSettings {
  std::uint64_t seed = 1;  ///< of initial values, sample order, dropout and what branches run
  /// Of the iteration number; called on the host stream's thread.
  std::function<float(std::int64_t)> learning_rate = [](std::int64_t) { return 0.05F; };
  /// Of the iteration number; unset: drawn with the program's probabilities of survival.
  std::function<std::uint32_t(std::int64_t)> guards{};
  /// Iteration number of the run's iteration 0.
  std::int64_t first_iteration = 0;
};

/// Persistent tensors have their initial values until the first run stores others or someone sets
/// them. Threads: see ProgramRunner.
class TrainingRunner final : public ProgramRunner {
 public:
  /// Makes all kernels. Program, kernel list and data must outlive the runner. Fails when they do
  /// not fit together.
  static Result<std::unique_ptr<TrainingRunner>> create(const TrainingProgram& program,
                                                        const KernelList& kernels,
                                                        const SampleSource& data,
                                                        TrainingSettings settings);

  std::uint32_t guards(std::int64_t iteration) override;
  /// Of each iteration of the run; NaN where none was collected.
  [[nodiscard]] const std::vector<float>& losses() const { return losses_; }

 private:
  TrainingRunner(const TrainingProgram& program, const KernelList& kernels,
                 const SampleSource& data, TrainingSettings settings);

  void launch_host(const OpDesc& desc, const OpCall& call) override;
  /// Initial values, and what the program holds of the first batch: made when they are loaded.
  void write_start(TensorId tensor, std::span<std::byte> to) const override;
  void write_held_samples(const HeldSamples& held, std::span<std::byte> to) const;
  /// Writes one input for the samples of this op's round.
  void feed(const Feed& feed, const OpDesc& desc, std::int64_t iteration, std::byte* to);
  void collect_loss(const OpDesc& desc, std::int64_t iteration, const std::byte* from);

  /// Of the iteration of the whole training.
  [[nodiscard]] std::uint32_t guards_of(std::int64_t iteration) const;
  /// What a device reads in an iteration of the run.
  [[nodiscard]] ControlBlock control_block(std::int64_t iteration) const;

  TrainingSettings settings_;
  std::vector<std::unique_ptr<HostUpdate>> host_updates_;  ///< by op; null for others
  Sampler sampler_;
  std::vector<std::int64_t> round_;  ///< samples of the round being fed
  std::vector<float> losses_;
};

}  // namespace tidepool::nn
