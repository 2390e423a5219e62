// JobSpec: what to train, on what, without its budget. Plain data. Messages of the library name the
// fields of these structs in backquotes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "job/device_kind.h"
#include "nn/learning_rate.h"
#include "nn/training_options.h"
#include "planning/planning_spec.h"

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

/// What runs where nobody says: the first that the library names on GPUs, those of least workspace
/// elsewhere.
AlgorithmPolicy algorithms_of(const JobSpec& job);

PlanTerms plan_terms(const JobSpec& job);

/// What the job's program is built with.
nn::TrainingOptions training_options(const JobSpec& job);

}  // namespace tidepool
