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

bool has_a_choice(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(), [](const Op& op) {
    return op.place == OpPlace::device && measured(op).size() > 1;
  });
}

}  // namespace tidepool
