// TrainingObserver: who watches a training. Everything has a default: watch what you need.
#pragma once

#include <cstdint>
#include <optional>

#include "base/observer.h"
#include "base/time.h"
#include "nn/evaluation_runner.h"

namespace tidepool {

struct IterationReport {
  std::int64_t number = 0;  ///< from 1, of the whole training
  std::int64_t total = 0;
  Nanos time{};
};

struct EpochReport {
  std::int64_t epoch = 0;       ///< from 1
  std::int64_t epochs = 0;      ///< of the whole training
  std::int64_t iterations = 0;  ///< of it in this run; fewer than it has when interrupted, resumed
  std::int64_t all_iterations = 0;  ///< that it has
  double loss = 0;                  ///< mean over its iterations in this run
  std::optional<nn::EvaluationResult> test;
  double seconds = 0;
};

/// As Observer, and what only a training has to tell.
class TrainingObserver : public Observer {
 public:
  /// An iteration inside the budget is complete.
  virtual void iteration(const IterationReport& /*report*/) {}
  virtual void epoch(const EpochReport& /*report*/) {}
};

}  // namespace tidepool
