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

/// Walks the addresses with the buffers that lie at one of them.
Result<void> validate_holds(const PackProblem& problem, const Packing& packing) {
  std::vector<std::size_t> order(problem.sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return packing.offsets[a] < packing.offsets[b]; });
  // In the same cycle where the other begins no earlier, in the next one where it does.
  const auto leaves_to = [&](const Hold& hold, const Hold& other) {
    const auto kind = static_cast<std::size_t>(other.kind);
    return other.begin >= (other.begin >= hold.begin ? hold.until : hold.until_next)[kind];
  };
  std::vector<std::size_t> here;
  for (const std::size_t i : order) {
    std::erase_if(here, [&](std::size_t j) {
      return packing.offsets[j] + problem.sizes[j] <= packing.offsets[i];
    });
    for (const std::size_t j : here) {
      if (problem.sizes[i] == 0) break;
      const Hold& a = problem.holds[i];
      const Hold& b = problem.holds[j];
      if (a.begin == b.begin || !leaves_to(a, b) || !leaves_to(b, a)) return overlap(i, j);
    }
    if (problem.sizes[i] > 0) here.push_back(i);
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
  if (!problem.lifetimes.empty()) return validate_lifetimes(problem, packing);
  return problem.holds.empty() ? validate_graph(problem, packing)
                               : validate_holds(problem, packing);
}

}  // namespace tidepool
