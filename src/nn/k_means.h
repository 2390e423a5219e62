// The program of a K-means iteration: a workload without layers or gradients.
#pragma once

#include "nn/training_program.h"

namespace tidepool::nn {

/// Lloyd's algorithm over the batch, which is the points: all of them in every iteration. They lie
/// in chunks, each a persistent tensor that nothing changes: what leaves the device need not be
/// copied out. An iteration assigns all chunks, then goes through them again to add them up, as
/// src-d/kmcuda does, and moves the centroids. The "loss" is the inertia: the sum of squared
/// distances from the centroids as they were before they moved.
///
/// Persistent besides: the centroids, and the assignments that they were made from. The first
/// centroids are the first of the points, which the seed has shuffled (Forgy's choice); where there
/// are more centroids than points, points serve twice, and the first of equal centroids gets all.
///
/// Of the options `batch` (points) and `workspace_limit` matter. Rounds, several devices, another
/// storage and another optimizer are usage errors.
Result<TrainingProgram> build_k_means_program(const Graph& graph, const TrainingOptions& options,
                                              const KernelList& kernels);

/// A tensor each: smaller ones make plans finer and longer.
inline constexpr std::int64_t kMostChunks = 32;

}  // namespace tidepool::nn
