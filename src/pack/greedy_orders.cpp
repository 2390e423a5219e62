#include "pack/greedy_orders.h"

#include <algorithm>
#include <bit>

#include "pack/lifetimes.h"

namespace tidepool {
namespace {

/// Answers "the highest load between two positions" in constant time.
class RangeMaximum {
 public:
  explicit RangeMaximum(std::vector<Bytes> values) {
    const std::size_t n = values.size();
    levels_.push_back(std::move(values));
    for (std::size_t width = 1; 2 * width <= n; width *= 2) {
      const std::vector<Bytes>& below = levels_.back();
      std::vector<Bytes> level(n - 2 * width + 1);
      for (std::size_t i = 0; i < level.size(); ++i) {
        level[i] = std::max(below[i], below[i + width]);
      }
      levels_.push_back(std::move(level));
    }
  }
  /// Over [begin, end); begin < end.
  [[nodiscard]] Bytes operator()(std::int32_t begin, std::int32_t end) const {
    const auto width = static_cast<std::size_t>(end - begin);
    const auto level = static_cast<std::size_t>(std::bit_width(width)) - 1;
    const std::size_t last = static_cast<std::size_t>(end) - (std::size_t{1} << level);
    return std::max(levels_[level][static_cast<std::size_t>(begin)], levels_[level][last]);
  }

 private:
  std::vector<std::vector<Bytes>> levels_;
};

Packing pack_by(const PackProblem& problem, std::span<const double> keys) {
  return place_in_order(problem, order_by(problem, keys), false);
}

}  // namespace

std::vector<double> duration_keys(const PackProblem& problem) {
  std::vector<double> keys(problem.sizes.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = problem.lifetimes.empty() ? static_cast<double>(problem.conflicts(i).size())
                                        : static_cast<double>(problem.lifetimes[i].upper) -
                                              static_cast<double>(problem.lifetimes[i].lower);
  }
  return keys;
}

std::vector<double> area_keys(const PackProblem& problem) {
  std::vector<double> keys = duration_keys(problem);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] *= static_cast<double>(problem.sizes[i]);
  return keys;
}

std::vector<double> conflict_keys(const PackProblem& problem) {
  std::vector<double> keys(problem.sizes.size());
  if (problem.lifetimes.empty()) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      for (const std::int32_t j : problem.conflicts(i)) {
        keys[i] += static_cast<double>(problem.sizes[static_cast<std::size_t>(j)]);
      }
    }
    return keys;
  }
  // Bytes that begin before this one ends, less those that end before it begins.
  const TimeAxis axis(problem);
  std::vector<Bytes> begun(static_cast<std::size_t>(axis.length()) + 1, 0);
  std::vector<Bytes> ended(begun.size() + 1, 0);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    begun[static_cast<std::size_t>(axis.begin(i)) + 1] += problem.sizes[i];
    ended[static_cast<std::size_t>(axis.end(i))] += problem.sizes[i];
  }
  for (std::size_t t = 1; t < begun.size(); ++t) {
    begun[t] += begun[t - 1];
    ended[t] += ended[t - 1];
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<double>(begun[static_cast<std::size_t>(axis.end(i))] -
                                  ended[static_cast<std::size_t>(axis.begin(i))]);
  }
  return keys;
}

std::vector<double> load_keys(const PackProblem& problem) {
  std::vector<double> keys(problem.sizes.size());
  if (problem.lifetimes.empty()) {
    // Those that began before a buffer and conflict with it are alive at its begin.
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto before = [&](std::size_t j) { return problem.starts[j] <= problem.starts[i]; };
      keys[i] = static_cast<double>(problem.sizes[i]);
      for (const std::int32_t j : problem.conflicts(i)) {
        const auto other = static_cast<std::size_t>(j);
        if (before(other)) keys[i] += static_cast<double>(problem.sizes[other]);
      }
    }
    return keys;
  }
  const TimeAxis axis(problem);
  const RangeMaximum highest(axis.load(problem));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<double>(highest(axis.begin(i), axis.end(i)));
  }
  return keys;
}

Packing pack_by_duration(const PackProblem& problem) {
  return pack_by(problem, duration_keys(problem));
}
Packing pack_by_area(const PackProblem& problem) { return pack_by(problem, area_keys(problem)); }
Packing pack_by_conflicts(const PackProblem& problem) {
  return pack_by(problem, conflict_keys(problem));
}
Packing pack_by_load(const PackProblem& problem) { return pack_by(problem, load_keys(problem)); }

}  // namespace tidepool
