// What a training was and what came of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "lower/overhead.h"
#include "planning/process_memory.h"
#include "schedule/plan_totals.h"
#include "train/disk_drift.h"
#include "train/preparation.h"
#include "train/training_observer.h"
#include "train/trials.h"

namespace tidepool {

/// The same training without a budget, run in turn with it.
struct Baseline {
  Spread time{};                  ///< of an iteration
  std::optional<bool> identical;  ///< losses and all weights, bit for bit; none: not compared
};

struct GraphReport {
  std::int64_t iterations = 0;  ///< in one graph
  Nanos closing{};              ///< what closing it adds to an iteration, by simulation
};

/// The disk was not as fast as the plan counted on.
struct DriftReport {
  std::int64_t iteration = 0;  ///< of the whole training, after which it was seen
  DiskChange disk;
  Nanos predicted{};                     ///< of an iteration of the plan until then
  std::optional<Nanos> planned_again{};  ///< ... of the plan made for it; none: none was made
};

/// Of a training with a file behind memory, or behind its host.
struct FileReport {
  FileTraffic traffic;          ///< of all iterations of the run
  std::int64_t iterations = 0;  ///< in which it was
  std::vector<DriftReport> drifts;

  /// Remembers it and says it, where it is news.
  void watch(DiskDrift& drift, std::int64_t iteration, Nanos predicted, Observer& observer);
  /// Of some iterations, what the device told before them and after.
  void count(const FileTraffic& before, const FileTraffic& after, std::int64_t of);
  [[nodiscard]] Bytes written_an_iteration() const;
};

/// Of a training in the RAM of the process.
struct MemoryReport {
  ProcessMemory process;
  Bytes highest = 0;           ///< resident at any time
  std::optional<Bytes> group;  ///< highest use of the control group; none: there is no limit
  std::optional<Bytes> group_limit;
  Bytes state = 0;  ///< of persistent values, which lie in a second file between epochs

  void measure();
};

struct TrainingReport {
  std::optional<Error> not_saved;  ///< the last checkpoint could not be: one before may be there
  std::string device;
  std::string fingerprint;
  std::string data;
  int threads = 0;  ///< of each device
  std::int32_t devices = 1;
  bool emulated_link = false;
  Preparation start;
  PlanTotals totals;  ///< of the plan
  std::int64_t sub_batch = 0;
  std::int64_t rounds = 1;
  bool round_statistics = false;  ///< batch norm takes them over a round: another training
  /// What gives other last bits than this model, data and device have where nothing else is asked
  /// for, fields in backquotes; empty: nothing.
  std::string other_bits;
  bool kept_whole = false;  ///< `sub_batch` auto, but rounds would change training

  std::int64_t next_iteration = 0;  ///< of the whole training
  std::vector<float> losses;        ///< of this run's iterations; with epochs their means are there
  Bytes arena_peak = 0;             ///< highest device byte used
  /// Times an iteration after the trials, or all; the median is 0 where all were on cold caches.
  Spread measured{};
  std::size_t measured_iterations = 0;
  Nanos predicted{};         ///< the same by prediction
  std::size_t branches = 0;  ///< that iterations may skip; `start` is of one that runs all
  std::optional<Baseline> baseline;
  std::optional<GraphReport> graph;
  std::vector<EpochReport> epochs;
  std::optional<MemoryReport> memory;
  std::optional<FileReport> file;
  std::optional<TrialsReport> trials;  ///< none: nobody asks for the fastest plan
  std::uint32_t state_crc32 = 0;       ///< of all persistent tensors

  /// Measured; none without a baseline.
  [[nodiscard]] std::optional<MeasuredShare> measured_overhead() const;
  /// Of the prediction, as a share of the measured time.
  [[nodiscard]] std::optional<MeasuredShare> prediction_error() const;
};

}  // namespace tidepool
