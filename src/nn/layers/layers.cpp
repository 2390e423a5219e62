#include "nn/layers/layers.h"

namespace tidepool::nn {

LayerSpec::LayerSpec() = default;
LayerSpec::LayerSpec(const LayerSpec& other) = default;
LayerSpec::LayerSpec(LayerSpec&& other) noexcept = default;
LayerSpec& LayerSpec::operator=(const LayerSpec& other) = default;
LayerSpec& LayerSpec::operator=(LayerSpec&& other) noexcept = default;
LayerSpec::~LayerSpec() = default;

LayerTraits traits_of(const LayerSpec& spec) {
  return std::visit([](const auto& layer) { return layer.traits; }, spec);
}

}  // namespace tidepool::nn
