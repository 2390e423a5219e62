#include "nn/models/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "nn/models/mlp.h"
#include "nn/models/resnet.h"
#include "nn/models/vgg.h"

namespace tidepool::nn {
namespace {

using Family = std::vector<ModelInfo> (*)();
constexpr Family kFamilies[] = {vgg_models, resnet_models, mlp_models};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

/// Up to three names, nearest first.
std::vector<std::string_view> nearest_names(std::string_view name) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const ModelInfo& model : models()) {
    ranked.emplace_back(edit_distance(name.substr(0, 64), model.name), model.name);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  ranked.resize(std::min<std::size_t>(ranked.size(), 3));
  std::vector<std::string_view> names;
  for (const auto& entry : ranked) names.push_back(entry.second);
  return names;
}

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
  return fail(ErrorCode::usage, fmt::format("unknown model '{}'; did you mean {}?", name,
                                            fmt::join(nearest_names(name), ", ")));
}

Result<Graph> build_model(std::string_view name, const ModelOptions& options) {
  const auto info = find_model(name);
  if (!info) return fail(info.error());
  const auto choose = [](std::int64_t wish, std::int64_t own) { return wish == 0 ? own : wish; };
  ModelOptions full;
  full.image.channels = choose(options.image.channels, (*info)->image.channels);
  full.image.height = choose(options.image.height, (*info)->image.height);
  full.image.width = choose(options.image.width, (*info)->image.width);
  full.classes = choose(options.classes, (*info)->classes);
  return (*info)->build(**info, full);
}

}  // namespace tidepool::nn
