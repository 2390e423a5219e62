#include "train/data_sets.h"

#include <vector>

#include "base/nearest.h"
#include "nn/data/cifar10.h"
#include "nn/data/fashion_mnist.h"
#include "nn/data/synthetic.h"

namespace tidepool {
namespace {

using Loaded = Result<std::unique_ptr<nn::Dataset>>;

constexpr std::int64_t kSyntheticSamples = 10'000;
constexpr std::int64_t kSyntheticTestSamples = 1'000;

Loaded load_fashion_mnist(const JobSpec& job, const nn::ModelInfo& /*model*/, nn::Split split) {
  if (!job.data.folder.empty()) return nn::load_fashion_mnist(split, job.data.folder);
  auto data = nn::load_fashion_mnist(split, nn::kFashionMnistFolder);
  if (data) return data;
  Error error = data.error();
  error.message += "; install Debian's package dataset-fashion-mnist or use `data` synthetic";
  return fail(std::move(error));
}

Loaded load_cifar10(const JobSpec& job, const nn::ModelInfo& /*model*/, nn::Split split) {
  if (job.data.folder.empty()) {
    return fail(ErrorCode::usage,
                "`data` cifar10 needs `data_folder`: the folder with data_batch_1.bin");
  }
  return nn::load_cifar10(split, job.data.folder);
}

/// Made from a seed: the test split is a part of the training samples.
Loaded make_synthetic(const JobSpec& job, const nn::ModelInfo& model, nn::Split split) {
  const bool train = split == nn::Split::train;
  return std::make_unique<nn::SyntheticDataset>(
      model.image, model.classes, train ? kSyntheticSamples : kSyntheticTestSamples, job.seed);
}

}  // namespace

std::span<const DataSetInfo> data_sets() {
  static constexpr DataSetInfo kDataSets[] = {
      {"fashion-mnist", load_fashion_mnist},
      {"cifar10", load_cifar10},
      {"synthetic", make_synthetic},
  };
  return kDataSets;
}

Loaded load_data(const JobSpec& job, const nn::ModelInfo& model, nn::Split split) {
  std::vector<std::string_view> names;
  for (const DataSetInfo& info : data_sets()) {
    if (info.name == job.data.name) return info.load(job, model, split);
    names.push_back(info.name);
  }
  return fail(unknown_name("data set", job.data.name, names));
}

}  // namespace tidepool
