// K-means by Lloyd's algorithm (Lloyd 1982), over points that lie in chunks: each chunk is assigned
// to the centroids, then added to sums, and the sums make the new centroids. Points and centroids
// are matrices with a row for each, distances squared Euclidean ones.
//
// Results do not depend on the device or on how the points are cut into chunks: distances decide in
// double, and sums are added in the order of the points.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

/// nearest: the row of the nearest centroid (i32), of equally near ones the first; distances: from
/// it. Compared in double, whatever found the candidates.
struct KMeansAssign {
  static constexpr const char* name = "k_means_assign";
  static constexpr auto operands =
      std::array{reads("points"), reads("centroids"), writes("nearest"), writes("distances")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const {
    return 2 * count(o[0]) * static_cast<double>(o[1].dims[0]);
  }
};

/// Of each centroid the sum and the number (i32) of the points that are nearest to it; inertia is
/// the sum of the distances. Apart: of this chunk; in place: added to what the chunks before left.
/// Sums are added in float, point by point. `assignments` keeps what `nearest` says.
struct KMeansAccumulate {
  static constexpr const char* name = "k_means_accumulate";
  static constexpr auto operands = std::array{reads("points"),
                                              reads("nearest"),
                                              reads("distances"),
                                              writes("sums", When::apart),
                                              writes("counts", When::apart),
                                              writes("inertia", When::apart),
                                              updates("sums", When::in_place),
                                              updates("counts", When::in_place),
                                              updates("inertia", When::in_place),
                                              writes("assignments")};
  static constexpr auto role = OpRole::state_update;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

/// A centroid is the mean of its points; one without points stays where it is.
struct KMeansUpdate {
  static constexpr const char* name = "k_means_update";
  static constexpr auto operands = std::array{reads("sums"), reads("counts"), updates("centroids")};
  static constexpr auto role = OpRole::weight_update;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

}  // namespace tidepool::nn
