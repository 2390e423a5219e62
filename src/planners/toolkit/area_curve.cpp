#include "planners/toolkit/area_curve.h"

#include <algorithm>

namespace tidepool {

AreaCurve::AreaCurve(std::span<const Bytes> load, std::span<const Nanos> start) {
  seconds_.reserve(start.size());
  for (const Nanos time : start) seconds_.push_back(to_seconds(time));
  until_.reserve(start.size());
  double sum = 0;
  for (std::size_t op = 0; op < load.size(); ++op) {
    until_.push_back(sum);
    sum += static_cast<double>(load[op]) * to_seconds(start[op + 1] - start[op]);
  }
  until_.push_back(sum);
  blocks_.resize((until_.size() + kBlock - 1) / kBlock);
}

double AreaCurve::until(OpId op) const {
  const auto i = static_cast<std::size_t>(op);
  const Block& block = blocks_[i / kBlock];
  return until_[i] - block.lowered - block.slope * (seconds_[i] - seconds_[i - i % kBlock]);
}

void AreaCurve::lower(OpId begin, OpId end, Bytes bytes) {
  if (begin >= end) return;
  const auto first = static_cast<std::size_t>(begin);
  const auto past = static_cast<std::size_t>(end);
  const auto slope = static_cast<double>(bytes);
  const double from = seconds_[first];
  const double to = seconds_[past];
  for (std::size_t b = first / kBlock; b < blocks_.size(); ++b) {
    const std::size_t low = b * kBlock;
    const std::size_t high = std::min(low + kBlock, until_.size());
    if (low >= past) {
      blocks_[b].lowered += slope * (to - from);
    } else if (low >= first && high <= past) {
      blocks_[b].lowered += slope * (seconds_[low] - from);
      blocks_[b].slope += slope;
    } else {
      for (std::size_t i = std::max(low, first); i < high; ++i) {
        until_[i] -= slope * (std::min(seconds_[i], to) - from);
      }
    }
  }
}

}  // namespace tidepool
