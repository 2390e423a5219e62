// The median: the upper one where the number is even.
#pragma once

#include <algorithm>
#include <ranges>
#include <vector>

#include "base/invariant.h"

namespace tidepool {

template <std::ranges::input_range Values>
[[nodiscard]] auto median(const Values& values) {
  std::vector<std::ranges::range_value_t<Values>> sorted(std::ranges::begin(values),
                                                         std::ranges::end(values));
  invariant(!sorted.empty(), "there is a value to be the median");
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

}  // namespace tidepool
