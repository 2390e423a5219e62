// The data sets there are, by name.
//
// A new one is a line in the list.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "job/job_spec.h"
#include "nn/data/dataset.h"
#include "nn/data/sample_source.h"
#include "nn/models/model.h"

namespace tidepool {

struct DataSetInfo {
  std::string_view name;
  enum class Kind : std::uint8_t { images, text, both } kind = Kind::images;
  Result<std::unique_ptr<nn::SampleSource>> (*load)(const JobSpec& job, const nn::ModelInfo& model,
                                                    nn::Split split) = nullptr;
  bool masks = false;  ///< also has a class for each pixel
};

std::span<const DataSetInfo> data_sets();

/// A split of the job's data set. An unknown name and one that is nothing for the model are usage
/// errors, a missing or malformed file one that names it.
Result<std::unique_ptr<nn::SampleSource>> load_data(const JobSpec& job, const nn::ModelInfo& model,
                                                    nn::Split split);

}  // namespace tidepool
