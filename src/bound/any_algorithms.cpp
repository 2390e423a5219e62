#include "bound/any_algorithms.h"

#include <algorithm>

namespace tidepool {
namespace {

/// Those that count.
std::vector<Algorithm> measured(const Op& op) {
  std::vector<Algorithm> all;
  for (const Algorithm& a : op.algorithms) {
    if (is_measured(a, op)) all.push_back(a);
  }
  return all;
}

}  // namespace

Program with_best_algorithms(Program program) {
  for (Op& op : program.ops) {
    Algorithm best = op.algorithms.front();
    best.name = "any";
    best.deterministic = true;
    const std::vector<Algorithm> all = measured(op);
    best.time = std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
                  return a.time < b.time;
                })->time;
    best.workspace = std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
                       return a.workspace < b.workspace;
                     })->workspace;
    op.algorithms = {std::move(best)};
  }
  return program;
}

AlgorithmChoices more_than_best(const Program& program, Bytes alignment) {
  AlgorithmChoices more(program.ops.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    std::vector<Algorithm> all = measured(program.ops[i]);
    std::stable_sort(all.begin(), all.end(), [](const Algorithm& a, const Algorithm& b) {
      return a.workspace != b.workspace ? a.workspace < b.workspace : a.time < b.time;
    });
    std::vector<Algorithm> best;  // each is faster than the one before
    for (const Algorithm& a : all) {
      if (best.empty() || a.time < best.back().time) best.push_back(a);
    }
    if (best.size() < 2) continue;
    const Bytes least = align_up(best.front().workspace, alignment);
    for (const Algorithm& a : best) {
      more[i].push_back({a.time - best.back().time, align_up(a.workspace, alignment) - least});
    }
  }
  return more;
}

bool has_a_choice(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(), [](const Op& op) {
    return op.place == OpPlace::device && measured(op).size() > 1;
  });
}

}  // namespace tidepool
