#include "planners/toolkit/peak_curve.h"

#include <algorithm>
#include <limits>

namespace tidepool {
namespace {

/// Of leaves without an op: never a peak.
constexpr Bytes kNoLoad = std::numeric_limits<Bytes>::min() / 2;

}  // namespace

PeakCurve::PeakCurve(std::span<const Bytes> load) : ops_(load.size()) {
  while (leaves_ < ops_) leaves_ *= 2;
  highest_.assign(2 * leaves_, kNoLoad);
  lowered_.assign(2 * leaves_, 0);
  std::copy(load.begin(), load.end(), highest_.begin() + static_cast<std::ptrdiff_t>(leaves_));
  for (std::size_t k = leaves_; --k > 0;) {
    highest_[k] = std::max(highest_[2 * k], highest_[2 * k + 1]);
  }
}

void PeakCurve::lower(OpId begin, OpId end, Bytes bytes) {
  if (begin >= end) return;
  const std::size_t first = leaves_ + static_cast<std::size_t>(begin);
  const std::size_t past = leaves_ + static_cast<std::size_t>(end);
  const auto take = [&](std::size_t k) {
    highest_[k] -= bytes;
    lowered_[k] += bytes;
  };
  for (std::size_t low = first, high = past; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) take(low++);
    if (high % 2 == 1) take(--high);
  }
  for (std::size_t leaf : {first, past - 1}) {
    for (std::size_t k = leaf / 2; k > 0; k /= 2) {
      highest_[k] = std::max(highest_[2 * k], highest_[2 * k + 1]) - lowered_[k];
    }
  }
}

OpId PeakCurve::peak_op() const {
  std::size_t k = 1;
  while (k < leaves_) {
    k *= 2;
    if (highest_[k + 1] > highest_[k]) ++k;
  }
  return static_cast<OpId>(k - leaves_);
}

std::vector<Bytes> PeakCurve::load() const {
  std::vector<Bytes> above(2 * leaves_, 0);  // lowered above each node
  std::vector<Bytes> load(ops_);
  for (std::size_t k = 2; k < 2 * leaves_; ++k) above[k] = above[k / 2] + lowered_[k / 2];
  for (std::size_t op = 0; op < ops_; ++op) load[op] = highest_[leaves_ + op] - above[leaves_ + op];
  return load;
}

}  // namespace tidepool
