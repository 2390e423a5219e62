#include "train/training_report.h"

#include "lower/overhead.h"

namespace tidepool {

std::optional<double> TrainingReport::measured_overhead() const {
  if (!baseline || measured_iterations == 0) return std::nullopt;
  return overhead(measured, baseline->time);
}

std::optional<double> TrainingReport::prediction_error() const {
  if (measured_iterations == 0 || measured.count() == 0) return std::nullopt;
  return to_ms(predicted) / to_ms(measured) - 1;
}

}  // namespace tidepool
