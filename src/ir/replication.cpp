#include "ir/replication.h"

#include "base/invariant.h"

namespace tidepool {
namespace {

void copy_times(const Op& from, Op& to) {
  invariant(to.algorithms.size() == from.algorithms.size(),
            "replicas have the algorithms of their op");
  for (std::size_t a = 0; a < from.algorithms.size(); ++a) {
    to.algorithms[a].time = from.algorithms[a].time;
  }
}

}  // namespace

void take_times(const Program& part, const Replication& replication, Program& whole) {
  for (const std::vector<OpId>& ops : replication.ops) {
    invariant(ops.size() == part.ops.size(), "a replica has all ops of its part");
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& from = part.ops[i];
      if (from.place != OpPlace::device) continue;
      copy_times(from, whole.ops[static_cast<std::size_t>(ops[i])]);
    }
  }
}

void give_times(const Program& whole, const Replication& replication, Program& part) {
  const std::vector<OpId>& ops = replication.ops.front();
  invariant(ops.size() == part.ops.size(), "a replica has all ops of its part");
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Op& to = part.ops[i];
    if (to.place == OpPlace::device) copy_times(whole.ops[static_cast<std::size_t>(ops[i])], to);
  }
}

}  // namespace tidepool
