// Job: a training whose model is built for its device.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/observer.h"
#include "job/device_kind.h"
#include "job/job_spec.h"
#include "nn/data/sample_source.h"
#include "nn/data_parallel.h"
#include "nn/graph.h"
#include "nn/stochastic_depth.h"
#include "nn/training_program.h"
#include "nn/training_runner.h"

namespace tidepool {

/// Move-only; the program's address is stable until `set_rounds`.
class Job {
 public:
  /// Unknown names and what does not go together are usage errors. With `choose_sub_batch` it is in
  /// rounds where the whole batch is too large for kernels.
  static Result<Job> make(const JobSpec& spec, Observer& observer);

  [[nodiscard]] const JobSpec& spec() const { return spec_; }
  [[nodiscard]] const DeviceKind& kind() const { return *kind_; }
  [[nodiscard]] const nn::KernelList& kernels() const { return *kernels_; }
  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] const nn::SampleSource& data() const { return *data_; }
  /// Of one device: the whole, or its part where there are several.
  [[nodiscard]] const nn::TrainingProgram& training() const { return *training_; }
  /// Of all devices: what runs.
  [[nodiscard]] const nn::TrainingProgram& whole() const {
    return parallel_ ? parallel_->whole : *training_;
  }
  /// Null where there is one device.
  [[nodiscard]] const nn::DataParallel* parallel() const { return parallel_.get(); }
  /// Times of the algorithms are filled in by profiling.
  [[nodiscard]] Program& program() { return training_->program; }
  [[nodiscard]] const Program& program() const { return training_->program; }

  /// Samples of an epoch that do not fill a batch are left out.
  [[nodiscard]] std::int64_t iterations_per_epoch() const { return data_->size() / spec_.batch; }
  /// A training of `iterations` in all, on all devices, that goes on at `first_iteration`.
  [[nodiscard]] Result<std::unique_ptr<nn::TrainingRunner>> make_runner(
      std::int64_t iterations = 0, std::int64_t first_iteration = 0) const;
  /// Runs the program of one device, to measure it: no branch is skipped.
  [[nodiscard]] Result<std::unique_ptr<nn::TrainingRunner>> make_runner_of_one() const;
  /// The program of one device of the same job with its batch in rounds of `sub_batch` samples.
  [[nodiscard]] Result<Program> in_rounds(std::int64_t sub_batch, bool statistics) const;
  /// The same job with another batch and other rounds: its data and model are shared.
  [[nodiscard]] Result<Job> with(std::int64_t batch, std::int64_t sub_batch) const;
  /// The same batch in other rounds from now on. Where it fails nothing has changed.
  Result<void> set_rounds(std::int64_t sub_batch);
  /// A round smaller than the batch changes training: batch norm takes its statistics over it, and
  /// K-means has none.
  [[nodiscard]] bool rounds_change_training() const { return nn::rounds_change_training(*graph_); }
  /// Bit g: branch g runs in this iteration of the training.
  [[nodiscard]] std::uint32_t branches_of(std::int64_t iteration) const {
    return nn::draw_branches(training_->survival, spec_.seed, iteration);
  }
  /// The forward pass of the same model, for the test split of the same data.
  [[nodiscard]] Result<nn::TrainingProgram> make_evaluation() const;
  [[nodiscard]] Result<std::unique_ptr<nn::SampleSource>> load_test_data() const;
  /// What must be the same for a checkpoint to go on bit for bit.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> settings() const;

  /// Not opened yet: it has no memory. All devices that the machine has, in one.
  [[nodiscard]] std::unique_ptr<Device> make_device(const Machine& machine) const;
  /// Of the device's arenas.
  [[nodiscard]] Bytes alignment() const { return make_device({})->alignment(); }
  /// Device, threads and kernels: what times and bits depend on.
  [[nodiscard]] std::string fingerprint() const;

 private:
  Job() = default;
  [[nodiscard]] Result<std::unique_ptr<nn::TrainingRunner>> runner_of(
      const nn::TrainingProgram& program, std::int64_t iterations, std::int64_t first_iteration,
      std::function<std::uint32_t(std::int64_t)> guards) const;

  JobSpec spec_;
  const DeviceKind* kind_ = nullptr;
  const nn::KernelList* kernels_ = nullptr;
  int threads_ = 0;
  std::shared_ptr<const nn::SampleSource> data_;
  std::shared_ptr<const nn::Graph> graph_;
  nn::TrainingOptions options_;
  std::unique_ptr<nn::TrainingProgram> training_;
  std::unique_ptr<nn::DataParallel> parallel_;
};

/// What Job::fingerprint says, without building a model.
Result<std::string> device_fingerprint(const DeviceSpec& device);

/// As `nn::parse_learning_rate` reads it.
std::string to_text(const nn::LearningRate& rate);
std::string_view to_text(nn::Optimizer optimizer);
std::string_view to_text(nn::Storage storage);
std::string_view to_text(Accumulation accumulation);

}  // namespace tidepool
