// A training job as the user gives it: model, data, device. Shared by train, plan and profile.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "algorithm_choice.h"
#include "context.h"
#include "cost/profile.h"
#include "device_kind.h"
#include "nn/checkpoint.h"
#include "nn/data/dataset.h"
#include "nn/learning_rate.h"
#include "nn/training_program.h"
#include "nn/training_runner.h"
#include "planners/planner.h"
#include "runtime/executor.h"

namespace tidepool::cli {

struct JobArguments {
  std::string model;
  std::int64_t batch = 100;
  std::int64_t sub_batch = 0;  ///< 0: the batch
  bool sub_batch_statistics = false;
  std::string device = "cpu";
  int threads = 0;
  std::string link;
  std::string storage = "in-place";
  std::string data = "fashion-mnist";
  std::string data_dir;
  std::uint64_t seed = 1;
  std::string learning_rate = "0.02";
  std::string optimizer = "sgd";
  double weight_decay = -1;  ///< below 0: the optimizer's usual one
  std::string algorithms = "least-workspace";
  KernelRequest kernels;
};

/// Adds the options of a job to a subcommand.
void add_job_options(CLI::App& command, JobArguments& arguments);

struct BudgetArguments {
  std::string device = "100%";
  std::string host;
  std::string planner = "autoswap";
  Nanos time_limit{std::chrono::seconds(10)};
};
/// --budget, --host-budget.
void add_size_options(CLI::App& command, BudgetArguments& arguments);
/// Those and --planner.
void add_budget_options(CLI::App& command, BudgetArguments& arguments);
void add_time_limit_option(CLI::App& command, BudgetArguments& arguments);
/// What a planner is told: seed, algorithms and time limit of the arguments, Ctrl-C.
PlannerOptions planner_options(const JobArguments& job, const BudgetArguments& budget);

/// A job whose model is built for its device. Move-only; the program's address is stable.
class Job {
 public:
  static Result<Job> make(const JobArguments& arguments);

  [[nodiscard]] const JobArguments& arguments() const { return arguments_; }
  [[nodiscard]] const DeviceKind& kind() const { return *kind_; }
  [[nodiscard]] const nn::KernelList& kernels() const { return *kernels_; }
  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] const nn::Dataset& data() const { return *data_; }
  [[nodiscard]] const nn::TrainingProgram& training() const { return *training_; }
  /// Times of the algorithms are filled in by profiling.
  [[nodiscard]] Program& program() { return training_->program; }
  [[nodiscard]] AlgorithmPolicy policy() const { return policy_; }

  /// Samples of an epoch that do not fill a batch are left out.
  [[nodiscard]] std::int64_t iterations_per_epoch() const {
    return data_->size() / arguments_.batch;
  }
  /// A training of `iterations` in all that goes on at `first_iteration`.
  Result<std::unique_ptr<nn::TrainingRunner>> make_runner(std::int64_t iterations = 0,
                                                          std::int64_t first_iteration = 0) const;
  /// The program of the same job with its batch in rounds of `sub_batch` samples.
  [[nodiscard]] Result<Program> in_rounds(std::int64_t sub_batch, bool statistics) const;
  /// The forward pass of the same model, for the test split of the same data.
  Result<nn::TrainingProgram> make_evaluation() const;
  Result<std::unique_ptr<nn::Dataset>> load_test_data() const;
  /// What must be the same for a checkpoint to go on bit for bit.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> settings() const;
  std::unique_ptr<Device> make_device(const Machine& machine) const;
  /// Device, threads and kernels: what times and bits depend on.
  [[nodiscard]] std::string fingerprint() const;

  /// The device as a machine. A real one has measured links. An emulated one has them from --link,
  /// or from `reference`, the time of one VGG16 iteration at batch 100 on it, so that transfer and
  /// compute are in the ratio of a GTX 1080 Ti (13.2 GB/s, 81.57 ms an iteration).
  [[nodiscard]] Result<Machine> machine(Nanos reference) const;
  [[nodiscard]] bool needs_reference() const {
    return arguments_.link.empty() && kind_->calibrate == nullptr;
  }
  /// This job is the reference itself.
  [[nodiscard]] bool is_reference() const;

 private:
  Job() = default;
  JobArguments arguments_;
  const DeviceKind* kind_ = nullptr;
  const nn::KernelList* kernels_ = nullptr;
  int threads_ = 0;
  AlgorithmPolicy policy_ = AlgorithmPolicy::least_workspace;
  std::unique_ptr<nn::Dataset> data_;
  std::unique_ptr<nn::Graph> graph_;
  nn::TrainingOptions options_;
  nn::LearningRate learning_rate_;
  std::unique_ptr<nn::TrainingProgram> training_;
};

/// What Job::fingerprint says, without building the job's model.
Result<std::string> device_fingerprint(const JobArguments& arguments);

/// Peak load without a budget, least-workspace algorithms: what percentages refer to.
Bytes unlimited_peak(const Program& program, Bytes alignment);

/// Resolves "60%" and checks that the budget can be met at all.
Result<Budget> resolve_budget(const BudgetArguments& arguments, const Program& program,
                              Bytes alignment);

/// A plan that keeps everything, for measuring: works before any op has a time.
Result<Planned> unlimited_plan(const Program& program, const Machine& machine,
                               const AlgorithmChoice& choice);

/// More than any program needs.
Budget no_limit();

/// Which algorithms of each op to run, one list after the other, to measure all of them or only
/// those of the policy.
std::vector<std::vector<std::int32_t>> variants_to_measure(const Program& program,
                                                           AlgorithmPolicy policy, bool all);
/// A plan that keeps everything inside the budget; nothing when that does not fit.
std::optional<Lowered> kept_plan(const Program& program, const Machine& machine,
                                 std::vector<std::int32_t> algorithms, const Budget& budget);

/// Runs the job for some iterations with everything kept inside the budget, which must be enough,
/// and puts the op times into its program. `all`: every algorithm of every op, not only those of
/// the job's policy. Returns the highest device byte used.
Result<Bytes> measure(Job& job, const Machine& machine, const Budget& budget, int iterations,
                      bool all, ProgressSink& progress);

/// The time of a VGG16 iteration at batch 100 on this device, from the cache or measured now.
Result<Nanos> reference_iteration(const Job& job, ProgressSink& progress);
/// The job's device as a machine, its link from --link or from the reference iteration.
Result<Machine> device_machine(const Job& job, ProgressSink& progress);
/// Remembers the reference iteration (best effort).
void remember_reference(const Job& job, Nanos iteration);

/// Sum of the device ops' times with the policy's algorithms.
Nanos compute_time(const Program& program, AlgorithmPolicy policy);

}  // namespace tidepool::cli
