// tp::train: a model in, a report out. In libtidepool_train, which is there where a device is
// built.
//
//   tp::TrainSpec spec;
//   spec.model = "tiny-vgg";
//   spec.data = "synthetic";
//   spec.budget = "60%";
//   spec.iterations = 3;
//   spec.compare_bits = true;
//   const tp::TrainReport report = tp::train(spec);
//   std::cout << report.arena_peak << " of " << report.budget << " bytes, identical: "
//             << report.identical.value_or(false) << "\n";
//
// Plain data, so that nothing of this library has to be the program's own. Errors are thrown as
// tp::Error; messages name fields in backquotes. It blocks until the training is over, uses several
// threads, and prints nothing. One training a process at a time: devices are not shared.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "tidepool/error.h"

namespace tp {

/// Names are those of the program: `tidepool models`, `tidepool planners`.
struct TrainSpec {
  std::string model{};
  std::int64_t batch = 100;
  std::int64_t sub_batch = 0;  ///< samples a round; 0: the batch
  std::string data{};          ///< "synthetic", "fashion-mnist", ...; empty: the model's usual
  std::string data_folder{};   ///< empty: where the data set usually lies
  std::string device{};        ///< empty: the first there is
  std::int32_t threads = 0;    ///< that compute; 0: the device's default
  std::uint64_t seed = 1;      ///< of weights, sample order, dropout
  double learning_rate = 0.02;
  std::string optimizer = "sgd";  ///< or "adamw"

  std::string budget{};          ///< "200MiB", "60%" of the unlimited peak; empty: no limit
  std::int64_t host_budget = 0;  ///< bytes; 0: no limit
  std::string planner = "auto";
  std::chrono::nanoseconds time_limit{};  ///< of planning; 0: the planner's own
  std::int64_t evaluation_limit = 0;      ///< of planning; 0: none
  /// Profiles and plans are kept in, and taken from, the user's cache folder.
  bool cache = false;

  std::int64_t iterations = 10;  ///< where `epochs` is 0
  std::int64_t epochs = 0;       ///< above 0: so many
  bool compare_bits = false;     ///< run without a budget in turn: losses and weights bit for bit
  std::string checkpoint{};      ///< with epochs: a file, written after each
  std::string resume{};          ///< with epochs: a checkpoint to go on from
  bool overwrite = false;        ///< checkpoint may replace one that is not resumed
};

struct TrainObserver {
  /// From the thread that called train.
  std::function<void(std::int64_t number, std::int64_t total, std::chrono::nanoseconds time)>
      iteration{};
  /// What people should know although nothing has failed.
  std::function<void(const std::string& text)> notice{};
  std::stop_token stop{};  ///< asked to stop, train throws TP_STOPPED, or ends early with epochs
};

struct Epoch {
  std::int64_t number = 0;  ///< from 1
  double loss = 0;
  std::optional<double> accuracy;  ///< on the test split, where the model has one
  double seconds = 0;
};

struct TrainReport {
  std::string device{};
  std::int32_t threads = 0;
  std::int64_t sub_batch = 0, rounds = 1;
  std::int64_t budget = 0;      ///< bytes of the device; 0: no limit
  std::int64_t footprint = 0;   ///< bytes of the plan's arena
  std::int64_t arena_peak = 0;  ///< highest byte of it that was used
  std::int64_t host_bytes = 0;
  std::string planner{};
  std::chrono::nanoseconds measured{};   ///< median of an iteration
  std::chrono::nanoseconds predicted{};  ///< by the plan
  std::vector<float> losses{};           ///< of the iterations; empty with epochs
  std::vector<Epoch> epochs{};
  std::optional<bool> identical{};  ///< with compare_bits
  std::uint32_t state_crc32 = 0;    ///< of all weights and other state
};

/// TP_USAGE, TP_BAD_INPUT, TP_INFEASIBLE, TP_CHECK_FAILED, TP_STOPPED, TP_RUNTIME.
TP_API TrainReport train(const TrainSpec& spec, const TrainObserver& observer = {});

}  // namespace tp
