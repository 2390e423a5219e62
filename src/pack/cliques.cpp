#include "pack/cliques.h"

#include <algorithm>
#include <numeric>

#include "pack/lifetimes.h"

namespace tidepool {
namespace {

using Members = std::vector<std::int32_t>;

/// The living change from growing to shrinking only at a maximal clique.
std::vector<Members> alive_together(const PackProblem& problem) {
  const TimeAxis axis(problem);
  const auto length = static_cast<std::size_t>(axis.length());
  std::vector<Members> begins(length);
  for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
    begins[static_cast<std::size_t>(axis.begin(i))].push_back(static_cast<std::int32_t>(i));
  }
  std::vector<Members> cliques;
  Members alive;
  for (std::size_t t = 0; t < length; ++t) {
    const auto ended = [&](std::int32_t i) {
      return axis.end(static_cast<std::size_t>(i)) <= static_cast<std::int32_t>(t);
    };
    if (std::any_of(alive.begin(), alive.end(), ended)) {
      cliques.push_back(alive);
      std::erase_if(alive, ended);
    }
    alive.insert(alive.end(), begins[t].begin(), begins[t].end());
  }
  if (!alive.empty()) cliques.push_back(alive);
  return cliques;
}

std::vector<Members> by_begin(const PackProblem& problem, const Stop& stop) {
  const std::size_t n = problem.sizes.size();
  std::vector<std::int32_t> common(n, 0);  // how many of the clique each buffer conflicts with
  std::vector<Members> cliques;
  Members candidates;
  for (std::size_t i = 0; i < n && !(i % 64 == 63 && stop.requested()); ++i) {
    const auto conflicts = problem.conflicts(i);
    candidates.assign(conflicts.begin(), conflicts.end());
    std::stable_sort(candidates.begin(), candidates.end(), [&](std::int32_t a, std::int32_t b) {
      const std::int32_t x = problem.starts[static_cast<std::size_t>(a)];
      const std::int32_t y = problem.starts[static_cast<std::size_t>(b)];
      const bool late_x = x > problem.starts[i];
      const bool late_y = y > problem.starts[i];
      if (late_x != late_y) return late_y;  // those begun before come first
      return late_x ? x < y : x > y;
    });
    Members clique{static_cast<std::int32_t>(i)};
    std::fill(common.begin(), common.end(), 0);
    const auto join = [&](std::size_t member) {
      for (const std::int32_t j : problem.conflicts(member)) ++common[static_cast<std::size_t>(j)];
    };
    join(i);
    for (const std::int32_t j : candidates) {
      const auto other = static_cast<std::size_t>(j);
      if (common[other] != static_cast<std::int32_t>(clique.size())) continue;
      clique.push_back(j);
      join(other);
    }
    std::sort(clique.begin(), clique.end());
    cliques.push_back(std::move(clique));
  }
  std::sort(cliques.begin(), cliques.end());
  cliques.erase(std::unique(cliques.begin(), cliques.end()), cliques.end());
  return cliques;
}

}  // namespace

Cliques::Cliques(std::size_t buffers, std::vector<std::vector<std::int32_t>> members) {
  std::vector<std::int32_t> count(buffers + 1, 0);
  for (const Members& clique : members) {
    member_start_.push_back(static_cast<std::int32_t>(members_.size()));
    members_.insert(members_.end(), clique.begin(), clique.end());
    for (const std::int32_t i : clique) ++count[static_cast<std::size_t>(i) + 1];
  }
  member_start_.push_back(static_cast<std::int32_t>(members_.size()));
  std::partial_sum(count.begin(), count.end(), count.begin());
  clique_start_ = count;
  cliques_.resize(members_.size());
  for (std::size_t q = 0; q < members.size(); ++q) {
    for (const std::int32_t i : members[q]) {
      cliques_[static_cast<std::size_t>(count[static_cast<std::size_t>(i)]++)] =
          static_cast<std::int32_t>(q);
    }
  }
}

Cliques find_cliques(const PackProblem& problem) {
  return Cliques{problem.sizes.size(),
                 problem.lifetimes.empty() ? by_begin(problem, {}) : alive_together(problem)};
}

Bytes clique_bound(const PackProblem& problem, const Stop& stop) {
  if (!problem.lifetimes.empty()) return peak_load(problem);
  const Cliques cliques{problem.sizes.size(), by_begin(problem, stop)};
  Bytes most = 0;
  for (std::size_t q = 0; q < cliques.count(); ++q) {
    Bytes bytes = 0;
    for (const std::int32_t i : cliques.members(q)) {
      bytes += problem.sizes[static_cast<std::size_t>(i)];
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace tidepool
