#include "pack/sweep.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace tidepool {
namespace {

/// Free ranges by offset and by size; what is above the last one was never used.
class Holes {
 public:
  Bytes take(Bytes size, Bytes& footprint) {
    const auto hole = by_size_.lower_bound({size, 0});
    if (hole == by_size_.end()) {
      const auto last = by_offset_.empty() ? by_offset_.end() : std::prev(by_offset_.end());
      Bytes offset = footprint;
      if (last != by_offset_.end() && last->first + last->second == footprint) {
        offset = last->first;
        remove(last);
      }
      footprint = offset + size;
      return offset;
    }
    const auto [bytes, offset] = *hole;
    remove(by_offset_.find(offset));
    if (bytes > size) add(offset + size, bytes - size);
    return offset;
  }

  void give(Bytes offset, Bytes size) {
    auto above = by_offset_.lower_bound(offset);
    if (above != by_offset_.end() && above->first == offset + size) {
      size += above->second;
      remove(above++);
    }
    if (above != by_offset_.begin()) {
      const auto below = std::prev(above);
      if (below->first + below->second == offset) {
        offset = below->first;
        size += below->second;
        remove(below);
      }
    }
    add(offset, size);
  }

 private:
  void add(Bytes offset, Bytes size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove(std::map<Bytes, Bytes>::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    by_offset_.erase(hole);
  }

  std::map<Bytes, Bytes> by_offset_;
  std::set<std::pair<Bytes, Bytes>> by_size_;
};

}  // namespace

Packing pack_by_sweep(const PackProblem& problem) {
  const std::size_t n = problem.sizes.size();
  std::vector<std::size_t> begins(n);
  std::iota(begins.begin(), begins.end(), std::size_t{0});
  std::vector<std::size_t> ends = begins;
  std::stable_sort(begins.begin(), begins.end(), [&](std::size_t a, std::size_t b) {
    const Lifetime& x = problem.lifetimes[a];
    const Lifetime& y = problem.lifetimes[b];
    return x.lower != y.lower ? x.lower < y.lower : problem.sizes[a] > problem.sizes[b];
  });
  std::stable_sort(ends.begin(), ends.end(), [&](std::size_t a, std::size_t b) {
    return problem.lifetimes[a].upper < problem.lifetimes[b].upper;
  });
  Packing packing;
  packing.offsets.resize(n);
  Holes holes;
  std::size_t ended = 0;
  for (const std::size_t i : begins) {
    for (; problem.lifetimes[ends[ended]].upper <= problem.lifetimes[i].lower; ++ended) {
      const std::size_t gone = ends[ended];
      if (problem.sizes[gone] > 0) holes.give(packing.offsets[gone], problem.sizes[gone]);
    }
    if (problem.sizes[i] > 0) packing.offsets[i] = holes.take(problem.sizes[i], packing.footprint);
  }
  return packing;
}

}  // namespace tidepool
