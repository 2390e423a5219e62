#include "nn/models/model.h"

#include <fmt/format.h>

#include <utility>

#include "base/nearest.h"
#include "nn/models/char_rnn.h"
#include "nn/models/fcn.h"
#include "nn/models/inception.h"
#include "nn/models/k_means.h"
#include "nn/models/mlp.h"
#include "nn/models/mobilenet.h"
#include "nn/models/plain.h"
#include "nn/models/resnet.h"
#include "nn/models/squeezenet.h"
#include "nn/models/standard_resnet.h"
#include "nn/models/standard_vgg.h"
#include "nn/models/stochastic_resnet.h"
#include "nn/models/transformer.h"
#include "nn/models/unet.h"
#include "nn/models/vgg.h"

namespace tidepool::nn {
namespace {

using Family = std::vector<ModelInfo> (*)();
constexpr Family kFamilies[] = {
    vgg_models,   resnet_models,      mlp_models,       standard_resnet_models,   mobilenet_models,
    plain_models, squeezenet_models,  inception_models, standard_vgg_models,      fcn_models,
    unet_models,  transformer_models, char_rnn_models,  stochastic_resnet_models, k_means_models};

}  // namespace

std::span<const ModelInfo> models() {
  static const std::vector<ModelInfo> all = [] {
    std::vector<ModelInfo> list;
    for (const Family family : kFamilies) {
      for (ModelInfo& model : family()) list.push_back(std::move(model));
    }
    return list;
  }();
  return all;
}

Result<const ModelInfo*> find_model(std::string_view name) {
  for (const ModelInfo& model : models()) {
    if (model.name == name) return &model;
  }
  std::vector<std::string_view> names;
  for (const ModelInfo& model : models()) names.push_back(model.name);
  return fail(unknown_name("model", name, names));
}

Result<Graph> build_model(std::string_view name, const ModelOptions& options) {
  const auto info = find_model(name);
  if (!info) return fail(info.error());
  if ((*info)->takes_text() && options.image != ImageShape{}) {
    return fail(ErrorCode::usage, fmt::format("{} takes tokens, not images", name));
  }
  if (!(*info)->takes_text() && options.sequence != 0) {
    return fail(ErrorCode::usage,
                fmt::format("`sequence` is for models of text; {} takes images", name));
  }
  if (!(*info)->clusters && options.clusters != 0) {
    return fail(ErrorCode::usage, fmt::format("`clusters` is for K-means; {} has none", name));
  }
  const auto choose = [](std::int64_t wish, std::int64_t own) { return wish == 0 ? own : wish; };
  ModelOptions full;
  full.image.channels = choose(options.image.channels, (*info)->image.channels);
  full.image.height = choose(options.image.height, (*info)->image.height);
  full.image.width = choose(options.image.width, (*info)->image.width);
  full.classes = choose((*info)->clusters ? options.clusters : options.classes, (*info)->classes);
  full.sequence = choose(options.sequence, (*info)->sequence);
  return (*info)->build(**info, full);
}

}  // namespace tidepool::nn
