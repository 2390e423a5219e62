#include "measure/few_rounds.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace tidepool {
namespace {

constexpr std::int64_t kKinds = 3;  // the first, one between, the last

/// Ops of each round in order; those of none under kNone.
std::map<std::int32_t, std::vector<std::size_t>> ops_by_round(const Program& program) {
  std::map<std::int32_t, std::vector<std::size_t>> rounds;
  for (std::size_t i = 0; i < program.ops.size(); ++i) rounds[program.ops[i].round].push_back(i);
  return rounds;
}

/// The same work, whatever round it is in.
bool alike(const Op& a, const Op& b) {
  return a.kind == b.kind && a.layer == b.layer && a.phase == b.phase && a.flops == b.flops &&
         a.traffic == b.traffic &&
         std::ranges::equal(a.algorithms, b.algorithms, [](const Algorithm& x, const Algorithm& y) {
           return x.name == y.name && x.workspace == y.workspace;
         });
}

}  // namespace

std::int64_t batch_of_few_rounds(const Program& program) {
  const std::int64_t rounds = program.rounds();
  if (rounds <= kKinds) return program.batch;
  return program.batch - (rounds - kKinds) * program.sub_batch;
}

bool repeat_times(const Program& few, Program& program) {
  const auto from = ops_by_round(few);
  std::vector<std::pair<std::size_t, std::size_t>> pairs;  // op of few, op of program
  for (const auto& [round, ops] : ops_by_round(program)) {
    const auto last = static_cast<std::int32_t>(program.rounds() - 1);
    const auto kind = round < 1 ? round : round < last ? 1 : static_cast<int>(few.rounds() - 1);
    const auto same = from.find(kind);
    if (same == from.end() || same->second.size() != ops.size()) return false;
    for (std::size_t i = 0; i < ops.size(); ++i) pairs.emplace_back(same->second[i], ops[i]);
  }
  const auto same = [&](const auto& pair) {
    return alike(few.ops[pair.first], program.ops[pair.second]);
  };
  if (!std::ranges::all_of(pairs, same)) return false;
  for (const auto& [measured, op] : pairs) {
    for (std::size_t a = 0; a < program.ops[op].algorithms.size(); ++a) {
      program.ops[op].algorithms[a].time = few.ops[measured].algorithms[a].time;
    }
  }
  return true;
}

}  // namespace tidepool
