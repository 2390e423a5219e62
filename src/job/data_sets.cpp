#include "job/data_sets.h"

#include <fmt/format.h>

#include <vector>

#include "base/nearest.h"
#include "base/system_memory.h"
#include "nn/data/cifar10.h"
#include "nn/data/fashion_mnist.h"
#include "nn/data/synthetic.h"
#include "nn/data/synthetic_masks.h"
#include "nn/data/synthetic_text.h"
#include "nn/data/text.h"

namespace tidepool {
namespace {

using Loaded = Result<std::unique_ptr<nn::SampleSource>>;

constexpr std::int64_t kSyntheticSamples = 10'000;
constexpr std::int64_t kSyntheticTestSamples = 1'000;

Loaded load_fashion_mnist(const JobSpec& job, const nn::ModelInfo& model, nn::Split split) {
  const std::string& scratch = job.data.scratch_folder;
  const auto load = [&](const std::string& folder) -> Loaded {
    if (model.clusters) return nn::load_fashion_mnist_vectors(split, folder, scratch);
    if (model.segments) return nn::load_fashion_mnist_masks(split, folder, scratch);
    return nn::load_fashion_mnist(split, folder, scratch);
  };
  if (!job.data.folder.empty()) return load(job.data.folder);
  auto data = load(nn::kFashionMnistFolder);
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
  return nn::load_cifar10(split, job.data.folder, job.data.scratch_folder);
}

nn::TokenTask token_task(const JobSpec& job, const nn::ModelInfo& model) {
  return {job.sequence > 0 ? job.sequence : model.sequence, model.masked, job.seed};
}

Loaded load_text(const JobSpec& job, const nn::ModelInfo& model, nn::Split split) {
  return nn::load_text(split, token_task(job, model), job.data.folder, job.data.scratch_folder);
}

/// Where the samples were read from, as a rule.
std::string folder_of(const JobSpec& job, const nn::ModelInfo& model) {
  if (!job.data.folder.empty()) return job.data.folder;
  return model.takes_text() ? nn::kTextFolder : nn::kFashionMnistFolder;
}

/// Made from a seed: the test split is a part of the training samples.
Loaded make_synthetic(const JobSpec& job, const nn::ModelInfo& model, nn::Split split) {
  const std::int64_t size = split == nn::Split::train ? kSyntheticSamples : kSyntheticTestSamples;
  if (model.takes_text()) {
    return std::make_unique<nn::SyntheticText>(token_task(job, model), model.classes, size);
  }
  if (model.segments) {
    return std::make_unique<nn::SyntheticMasks>(model.image, model.classes, size, job.seed);
  }
  return std::make_unique<nn::SyntheticDataset>(model.image, model.classes, size, job.seed);
}

}  // namespace

std::span<const DataSetInfo> data_sets() {
  using Kind = DataSetInfo::Kind;
  static constexpr DataSetInfo kDataSets[] = {
      {"fashion-mnist", Kind::images, load_fashion_mnist, true},
      {"cifar10", Kind::images, load_cifar10},
      {"text", Kind::text, load_text},
      {"synthetic", Kind::both, make_synthetic, true},
  };
  return kDataSets;
}

Loaded load_data(const JobSpec& job, const nn::ModelInfo& model, nn::Split split) {
  const std::string_view usual = model.takes_text() ? "text" : "fashion-mnist";
  const std::string_view wanted = job.data.name.empty() ? usual : job.data.name;
  std::vector<std::string_view> names;
  for (const DataSetInfo& info : data_sets()) {
    names.push_back(info.name);
    if (info.name != wanted) continue;
    if (model.segments && info.kind != DataSetInfo::Kind::text && !info.masks) {
      return fail(ErrorCode::usage,
                  fmt::format("`data` {} has a class for each image; {} takes one for each pixel: "
                              "use `data` fashion-mnist or synthetic",
                              wanted, model.name));
    }
    const auto other = model.takes_text() ? DataSetInfo::Kind::images : DataSetInfo::Kind::text;
    if (info.kind != other) {
      auto data = info.load(job, model, split);
      if (!job.data.scratch_folder.empty()) forget_read_files(folder_of(job, model));
      return data;
    }
    const auto [has, takes] =
        model.takes_text() ? std::pair{"images", "text"} : std::pair{"text", "images"};
    return fail(ErrorCode::usage, fmt::format("`data` {} has {}; {} takes {}: use `data` {} or "
                                              "synthetic",
                                              wanted, has, model.name, takes, usual));
  }
  return fail(unknown_name("data set", wanted, names));
}

}  // namespace tidepool
