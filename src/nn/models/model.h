// The models by name. A family is one header and source; its models join the list in model.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nn/graph.h"

namespace tidepool::nn {

/// Zero means: the model's own.
struct ModelOptions {
  ImageShape image{};
  std::int64_t classes = 0;
  std::int64_t sequence = 0;  ///< tokens of a sample, of models of text
  std::int64_t clusters = 0;  ///< of K-means, in place of `classes`
};

struct ModelInfo {
  std::string name;
  std::string description;
  ImageShape image;  ///< used where the options do not say otherwise
  std::int64_t classes = 10;
  /// Gets options without zeros.
  Result<Graph> (*build)(const ModelInfo& info, const ModelOptions& options) = nullptr;
  /// Of models of text: tokens of a sample. They have no image, and `classes` is their vocabulary.
  std::int64_t sequence = 0;
  /// Of those: trained to find masked tokens rather than the next one.
  bool masked = false;
  /// Of models of images: trained on a class for each pixel.
  bool segments = false;
  /// K-means, without layers: `classes` are its clusters.
  bool clusters = false;
  /// What an iteration takes where nobody says; 0: a hundred samples.
  std::int64_t batch = 0;

  [[nodiscard]] bool takes_text() const { return sequence > 0; }
};

/// All models, families in order.
std::span<const ModelInfo> models();

/// An unknown name is a usage error that offers the nearest ones.
Result<const ModelInfo*> find_model(std::string_view name);

Result<Graph> build_model(std::string_view name, const ModelOptions& options = {});

}  // namespace tidepool::nn
