#include "nn/models/k_means.h"

namespace tidepool::nn {
namespace {

Result<Graph> build_k_means(const ModelInfo& info, const ModelOptions& options) {
  Graph graph;
  graph.name = info.name;
  graph.image = options.image;
  graph.classes = graph.clusters = options.classes;
  return graph;
}

}  // namespace

std::vector<ModelInfo> k_means_models() {
  return {
      {.name = "kmeans",
       .description = "K-means of Fashion-MNIST's vectors; the batch is the points",
       .image = {1, 28, 28},
       .classes = 1024,
       .build = build_k_means,
       .clusters = true,
       .batch = 60'000},
      {.name = "tiny-kmeans",
       .description = "K-means with few clusters of short vectors, for trials",
       .image = {3, 8, 8},
       .classes = 5,
       .build = build_k_means,
       .clusters = true},
  };
}

}  // namespace tidepool::nn
