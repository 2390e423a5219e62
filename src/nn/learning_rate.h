// LearningRate: a schedule of learning rates, written by people as
//   0.1                           constant
//   step:0.1,30,60,gamma=0.1      times gamma (default 0.1) at each milestone
//   cosine:0.1                    half a cosine down to zero at the end of the training
//   cosine:0.1,epochs=90          the same, at the end of 90 epochs
//   warmup:5+cosine:0.1           any of these, with a factor that rises linearly to 1 in 5 epochs
// Milestones, warm-up and lengths count in epochs and need not be whole.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tidepool::nn {

/// Of the whole training, earlier runs included.
struct TrainingLength {
  std::int64_t iterations_per_epoch = 1;
  std::int64_t iterations = 1;
};

struct LearningRate {
  enum class Shape : std::uint8_t { constant, step, cosine };

  Shape shape = Shape::constant;
  double base = 0.05;
  std::vector<double> milestones;  ///< of step, in epochs, increasing
  double gamma = 0.1;              ///< of step
  double epochs = 0;               ///< of cosine; 0: those of the training
  double warmup_epochs = 0;

  /// A pure function: a resumed training continues the schedule.
  [[nodiscard]] float at(std::int64_t iteration, const TrainingLength& length) const;
  friend bool operator==(const LearningRate&, const LearningRate&) = default;
};

/// A malformed text is a usage error that says what would be right.
Result<LearningRate> parse_learning_rate(std::string_view text);

}  // namespace tidepool::nn
