#include "report/overhead_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tidepool {
namespace {

/// Above it the axis is logarithmic.
constexpr double kMostLinear = 2;
/// Shown where every overhead is 0.
constexpr double kShownOfZeros = 0.1;
/// Shown at least: differences below it are noise.
constexpr double kLeastShown = 0.01;
/// Of the values' part of the axis: a mark at an end lies beside the frame, not on it.
constexpr double kRoom = 0.05;
/// A time of 0 has no logarithm.
constexpr double kLeastShare = -0.9999;

/// Marks above 0 in the order of their use.
std::vector<double> round_shares_up_to(double top) {
  std::vector<double> shares;
  for (double power = 0.01; power <= top; power *= 10) {
    for (const double m : {1.0, 2.0, 5.0}) {
      if (m * power <= top * (1 + 1e-9)) shares.push_back(m * power);
    }
  }
  return shares;
}

}  // namespace

OverheadAxis::OverheadAxis(double low, double high) {
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  logarithmic_ = high > kMostLinear;
  if (low == 0 && high == 0) high = kShownOfZeros;
  high = std::max(high, low + kLeastShown);
  low_ = scaled(low);
  high_ = scaled(high);
  const double room = kRoom * (high_ - low_);
  low_ -= room;
  high_ += room;
}

double OverheadAxis::scaled(double share) const {
  return logarithmic_ ? std::log1p(std::max(share, kLeastShare)) : share;
}

double OverheadAxis::unscaled(double scaled) const {
  return logarithmic_ ? std::expm1(scaled) : scaled;
}

double OverheadAxis::place(double share) const { return (scaled(share) - low_) / (high_ - low_); }

std::vector<Tick> OverheadAxis::ticks(int most, double apart) const {
  if (!logarithmic_) return percent_ticks(low_, high_, most);
  std::vector<Tick> list{{0, "0 %"}};
  for (const double share : {-0.1, -0.2, -0.5, -0.8, -0.9, -0.95, -0.98, -0.99}) {
    if (scaled(share) < low_ || place(list.front().value) - place(share) < apart) continue;
    list.insert(list.begin(), {share, fmt::format("{:.0f} %", 100 * share)});
  }
  for (const double share : round_shares_up_to(unscaled(high_))) {
    if (place(share) - place(list.back().value) < apart) continue;
    list.push_back({share, fmt::format("{:.0f} %", 100 * share)});
  }
  return list;
}

}  // namespace tidepool
