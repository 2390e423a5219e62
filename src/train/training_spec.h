// TrainingSpec: what to train, on what, inside which budget. Plain data; `run_training` (train.h)
// does what it says. Messages of this library name the fields of these structs in backquotes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nn/learning_rate.h"
#include "nn/training_options.h"
#include "planners/planner.h"
#include "train/device_kind.h"

namespace tidepool {

/// Names are looked up in the lists of device_kind.h, data_sets.h, nn/models and planners.
struct DeviceSpec {
  std::string name;  ///< empty: the first there is
  int threads = 0;   ///< compute threads; 0: the device's default
  /// Of an emulated link, bytes per second and direction; 0: in the ratio of a GTX 1080 Ti.
  Bytes link = 0;
  KernelRequest kernels;
  SpillOptions spill;  ///< what does not fit goes to a file; no folder: there is none
  /// Behind the host: what BudgetSpec::host does not hold goes on to it; no folder: there is none.
  SpillOptions file_tier{.behind_host = true};

  [[nodiscard]] bool spills() const { return !spill.folder.empty(); }
  [[nodiscard]] bool has_file_tier() const { return !file_tier.folder.empty(); }
  /// That of the two which there is.
  [[nodiscard]] const SpillOptions& file() const { return has_file_tier() ? file_tier : spill; }
};

struct DataSpec {
  std::string name;    ///< empty: text for models of text, else fashion-mnist
  std::string folder;  ///< `data_folder`; empty: where the data set usually lies
  /// Samples are kept in a file there that has no name; empty: in memory.
  std::string scratch_folder;
};

inline nn::LearningRate constant_rate(double rate) {
  nn::LearningRate constant;
  constant.base = rate;
  return constant;
}

/// Who sums the gradients of several devices.
enum class Accumulation : std::uint8_t {
  overlapped,  ///< the host, each as soon as it is there
  naive,       ///< device 0, when all devices are done
};

/// The work without its budget.
struct JobSpec {
  std::string model;
  std::int64_t batch = 100;
  /// Samples a round; 0: the batch. Rounds sum in another order: they give other last bits.
  std::int64_t sub_batch = 0;
  /// `sub_batch` auto, where it is 0: the planner chooses by times; one that does not by itself
  /// takes the largest with which it has a plan. The batch where rounds would change training.
  bool choose_sub_batch = false;
  bool sub_batch_statistics = false;  ///< rounds may change training, see nn::TrainingOptions
  std::int64_t sequence = 0;          ///< tokens of a sample, of models of text; 0: the model's own
  std::int64_t clusters = 0;          ///< of K-means; 0: the model's own
  std::int32_t devices = 1;           ///< that share the batch in equal parts
  Accumulation accumulation = Accumulation::overlapped;
  DeviceSpec device;
  DataSpec data;
  nn::Storage storage = nn::Storage::in_place;
  std::uint64_t seed = 1;  ///< of initial weights, sample order, dropout, skipped branches
  nn::LearningRate learning_rate = constant_rate(0.02);
  nn::Optimizer optimizer = nn::Optimizer::sgd;
  std::optional<double> weight_decay;  ///< none: the optimizer's usual one
  /// None: the device's usual ones (algorithms_of), which no time decides.
  std::optional<AlgorithmPolicy> algorithms;
  /// `algorithms` auto: planners that choose algorithms do so, by times; the others take the usual.
  bool choose_algorithms = false;
  /// Algorithms with a larger workspace do not exist, but that of the least each op has.
  Bytes workspace_limit = nn::kNoWorkspaceLimit;
};

/// RAM of the whole process: code, heap, inputs and the arenas of device and host.
struct MemorySpec {
  Bytes bytes = 0;
  bool automatic = false;  ///< what the control group allows, else what the machine has left

  [[nodiscard]] bool given() const { return automatic || bytes > 0; }
};

struct BudgetSpec {
  /// Percentages are of the unlimited peak load with least-workspace algorithms: it is computed,
  /// nothing runs without a budget to find it. At 100 % there is no room for gaps between
  /// addresses. Unless it is given there is no limit, or that of `TrainingSpec::plan`.
  SizeOrPercent device{.bytes = kNoDeviceLimit};
  Bytes host = 0;       ///< `host_budget`, for what leaves the device; 0: no limit
  MemorySpec memory{};  ///< the device's bytes are what this leaves

  /// Of the device's bytes.
  [[nodiscard]] bool limited() const {
    return device.percent >= 0 || device.bytes < kNoDeviceLimit;
  }
};

inline constexpr Nanos kGapTimeLimit = std::chrono::seconds(10);

/// Of planners that learn a Q-network. Files may be empty.
struct LearningSpec {
  std::int32_t episodes = 0;  ///< 0: the planner's own number, within its time limit
  bool published = false;     ///< `dqn_published`: reach 1, nothing but the paper's algorithm
  bool uniform = false;       ///< `dqn_uniform`: all actions at random
  std::optional<std::int32_t> reach;
  std::optional<double> discount;
  std::optional<std::int32_t> width;
  std::optional<double> rate;  ///< of learning
  std::string network;         ///< a saved network to go on from; `auto` plays one episode of it
  std::string save_network;    ///< written with the plan
  std::string episode_log;     ///< the same, CSV
};

struct PlannerSpec {
  std::string name = "auto";
  /// For searches, and once more for the optimality gap. Unset: each planner's own, and
  /// kGapTimeLimit.
  std::optional<Nanos> time_limit;
  /// Searches end after so many evaluations of strategies instead: the same plan on any machine.
  /// 0: the time limit holds.
  std::int64_t evaluations = 0;
  SwarmSize swarm;     ///< `pso_particles`, `pso_iterations`: only for planners that have one
  ModnnOptions modnn;  ///< `modnn_weights_leave`, `modnn_one_stream`: only for that planner
  LearningSpec learning;
};

/// Profiles and plans kept between runs, in `cache_folder()`.
struct CacheSpec {
  bool off = false;
  bool reprofile = false;  ///< measure although the cache has a profile, and replace it
  bool replan = false;
};

/// What a training is compared with: the same training without a budget, which runs in turn with it
/// and needs the memory for that.
enum class Comparison : std::uint8_t {
  none,
  times,  ///< what the budget costs, measured
  bits,   ///< that, and losses and all weights bit for bit
};

struct TrainingSpec {
  JobSpec job;
  BudgetSpec budget;
  PlannerSpec planner;
  CacheSpec cache;
  std::string profile;  ///< a profile file of this device instead of measuring; may be empty
  std::string plan;     ///< a plan file of this device instead of planning; may be empty
  bool correct = true;  ///< plans of planners that correct themselves are, see correction.h

  std::int64_t iterations = 10;  ///< where `epochs` is 0
  std::int64_t epochs = 0;       ///< above 0: this many, the earlier runs of `resume` included

  // With iterations.
  Comparison comparison = Comparison::none;
  std::int64_t graph = 0;  ///< iterations captured in one graph, on devices that do so; 0: none

  // With epochs.
  bool evaluate = true;    ///< on the test split, after each
  std::string checkpoint;  ///< a file written after every epoch and when stopped; empty: `resume`
  std::string resume;      ///< a checkpoint to go on from, bit for bit; may be empty
};

/// What runs where nobody says: the first that the library names on GPUs, those of least workspace
/// elsewhere.
AlgorithmPolicy algorithms_of(const JobSpec& job);

/// With which a time without a budget is one that no plan beats by algorithms alone: the fastest
/// where its planner is one that chooses them and is asked to, else those of the policy.
AlgorithmPolicy best_algorithms(const JobSpec& job, bool chooses);
/// Whether plans may run others than those of least workspace: then all have to be measured.
bool plans_all_algorithms(const JobSpec& job, bool chooses);

/// What a planner is told.
PlannerOptions planner_options(const JobSpec& job, const PlannerSpec& planner);
/// How long the optimality gap of its plan may take.
inline Nanos gap_time_limit(const PlannerSpec& planner) {
  return planner.time_limit.value_or(kGapTimeLimit);
}

}  // namespace tidepool
