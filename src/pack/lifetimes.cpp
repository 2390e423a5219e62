#include "pack/lifetimes.h"

#include <algorithm>
#include <numeric>

namespace tidepool {

PackProblem lifetime_problem(std::vector<Bytes> sizes, std::vector<Lifetime> lifetimes) {
  PackProblem problem;
  problem.sizes = std::move(sizes);
  problem.lifetimes = std::move(lifetimes);
  std::vector<std::int32_t> order(problem.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return problem.lifetimes[static_cast<std::size_t>(a)].lower <
           problem.lifetimes[static_cast<std::size_t>(b)].lower;
  });
  problem.starts.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    problem.starts[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  }
  return problem;
}

PackProblem cyclic_problem(std::vector<Bytes> sizes, std::span<const Lifetime> lifetimes,
                           std::int64_t cycle) {
  PackProblem problem;
  problem.sizes = std::move(sizes);
  const auto meet = [cycle](const Lifetime& a, const Lifetime& b) {
    for (const std::int64_t shift : {-cycle, std::int64_t{0}, cycle}) {
      if (a.lower < b.upper + shift && b.lower + shift < a.upper) return true;
    }
    return false;
  };
  problem.neighbour_start.push_back(0);
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    problem.starts.push_back(static_cast<std::int32_t>(lifetimes[i].lower));
    for (std::size_t j = 0; j < lifetimes.size(); ++j) {
      if (i != j && meet(lifetimes[i], lifetimes[j])) {
        problem.neighbours.push_back(static_cast<std::int32_t>(j));
      }
    }
    problem.neighbour_start.push_back(static_cast<std::int32_t>(problem.neighbours.size()));
  }
  return problem;
}

TimeAxis::TimeAxis(const PackProblem& problem) {
  std::vector<std::int64_t> lowers;
  lowers.reserve(problem.lifetimes.size());
  for (const Lifetime& l : problem.lifetimes) lowers.push_back(l.lower);
  std::sort(lowers.begin(), lowers.end());
  lowers.erase(std::unique(lowers.begin(), lowers.end()), lowers.end());
  length_ = static_cast<std::int32_t>(lowers.size());
  const auto position = [&](std::int64_t time) {
    return static_cast<std::int32_t>(std::lower_bound(lowers.begin(), lowers.end(), time) -
                                     lowers.begin());
  };
  for (const Lifetime& l : problem.lifetimes) {
    begin_.push_back(position(l.lower));
    end_.push_back(position(l.upper));
  }
}

std::vector<Bytes> TimeAxis::load(const PackProblem& problem) const {
  std::vector<Bytes> load(static_cast<std::size_t>(length_) + 1, 0);
  for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
    load[static_cast<std::size_t>(begin_[i])] += problem.sizes[i];
    load[static_cast<std::size_t>(end_[i])] -= problem.sizes[i];
  }
  std::partial_sum(load.begin(), load.end(), load.begin());
  load.pop_back();
  return load;
}

Bytes peak_load(const PackProblem& problem) {
  const std::vector<Bytes> load = TimeAxis(problem).load(problem);
  return load.empty() ? 0 : *std::max_element(load.begin(), load.end());
}

PackProblem with_conflict_graph(const PackProblem& problem) {
  PackProblem graph;
  graph.sizes = problem.sizes;
  graph.starts = problem.starts;
  graph.fixed = problem.fixed;
  const std::vector<Lifetime>& lives = problem.lifetimes;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    graph.neighbour_start.push_back(static_cast<std::int32_t>(graph.neighbours.size()));
    for (std::size_t j = 0; j < lives.size(); ++j) {
      if (i != j && lives[i].lower < lives[j].upper && lives[j].lower < lives[i].upper) {
        graph.neighbours.push_back(static_cast<std::int32_t>(j));
      }
    }
  }
  graph.neighbour_start.push_back(static_cast<std::int32_t>(graph.neighbours.size()));
  return graph;
}

}  // namespace tidepool
