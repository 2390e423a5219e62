#include "pack/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace tidepool {
namespace {

tl::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::check_failed, std::move(message));
}

tl::unexpected<Error> overlap(std::size_t a, std::size_t b) {
  return wrong(fmt::format("buffers {} and {} conflict and overlap", a, b));
}

/// Walks the time with the living buffers by offset: a newcomer overlaps one of its two neighbours
/// or nobody.
Result<void> validate_lifetimes(const PackProblem& problem, const Packing& packing) {
  struct Event {
    std::int64_t time;
    bool begins;  // at equal times, ends come first
    std::size_t buffer;
    bool operator<(const Event& e) const {
      return time != e.time ? time < e.time : begins < e.begins;
    }
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
    if (problem.sizes[i] == 0) continue;
    events.push_back({problem.lifetimes[i].lower, true, i});
    events.push_back({problem.lifetimes[i].upper, false, i});
  }
  std::sort(events.begin(), events.end());
  std::map<Bytes, std::size_t> living;
  for (const Event& e : events) {
    const Bytes offset = packing.offsets[e.buffer];
    if (!e.begins) {
      living.erase(offset);
      continue;
    }
    const auto above = living.lower_bound(offset);
    if (above != living.end() && above->first < offset + problem.sizes[e.buffer]) {
      return overlap(e.buffer, above->second);
    }
    if (above != living.begin()) {
      const auto below = std::prev(above);
      if (below->first + problem.sizes[below->second] > offset) {
        return overlap(e.buffer, below->second);
      }
    }
    living.emplace(offset, e.buffer);
  }
  return {};
}

Result<void> validate_graph(const PackProblem& problem, const Packing& packing) {
  for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
    for (const std::int32_t other : problem.conflicts(i)) {
      const auto j = static_cast<std::size_t>(other);
      if (packing.offsets[i] < packing.offsets[j] + problem.sizes[j] &&
          packing.offsets[j] < packing.offsets[i] + problem.sizes[i]) {
        return overlap(i, j);
      }
    }
  }
  return {};
}

}  // namespace

Result<void> validate(const PackProblem& problem, const Packing& packing) {
  if (packing.offsets.size() != problem.sizes.size()) {
    return wrong(
        fmt::format("{} offsets for {} buffers", packing.offsets.size(), problem.sizes.size()));
  }
  Bytes top = 0;
  for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
    if (packing.offsets[i] < 0) return wrong(fmt::format("buffer {} has no offset", i));
    if (i < problem.fixed.size() && problem.fixed[i] >= 0 &&
        packing.offsets[i] != problem.fixed[i]) {
      return wrong(fmt::format("buffer {} is fixed at {} and lies at {}", i, problem.fixed[i],
                               packing.offsets[i]));
    }
    top = std::max(top, packing.offsets[i] + problem.sizes[i]);
  }
  if (top != packing.footprint) {
    return wrong(
        fmt::format("footprint {}, but the highest byte used is {}", packing.footprint, top));
  }
  return problem.lifetimes.empty() ? validate_graph(problem, packing)
                                   : validate_lifetimes(problem, packing);
}

}  // namespace tidepool
