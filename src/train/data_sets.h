// The data sets there are, by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "nn/data/dataset.h"
#include "nn/models/model.h"
#include "train/training_spec.h"

namespace tidepool {

struct DataSetInfo {
  std::string_view name;
  Result<std::unique_ptr<nn::Dataset>> (*load)(const JobSpec& job, const nn::ModelInfo& model,
                                               nn::Split split);
};

std::span<const DataSetInfo> data_sets();

/// A split of the job's data set. An unknown name is a usage error, a missing or malformed file one
/// that names it.
Result<std::unique_ptr<nn::Dataset>> load_data(const JobSpec& job, const nn::ModelInfo& model,
                                               nn::Split split);

}  // namespace tidepool
