#include "ir/replication.h"

#include <cassert>

namespace tidepool {
namespace {

void copy_times(const Op& from, Op& to) {
  assert(to.algorithms.size() == from.algorithms.size());
  for (std::size_t a = 0; a < from.algorithms.size(); ++a) {
    to.algorithms[a].time = from.algorithms[a].time;
  }
}

}  // namespace

void take_times(const Program& part, const Replication& replication, Program& whole) {
  for (const std::vector<OpId>& ops : replication.ops) {
    assert(ops.size() == part.ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& from = part.ops[i];
      if (from.place != OpPlace::device) continue;
      copy_times(from, whole.ops[static_cast<std::size_t>(ops[i])]);
    }
  }
}

void give_times(const Program& whole, const Replication& replication, Program& part) {
  const std::vector<OpId>& ops = replication.ops.front();
  assert(ops.size() == part.ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Op& to = part.ops[i];
    if (to.place == OpPlace::device) copy_times(whole.ops[static_cast<std::size_t>(ops[i])], to);
  }
}

}  // namespace tidepool
