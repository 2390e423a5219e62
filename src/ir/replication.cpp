#include "ir/replication.h"

#include <cassert>

namespace tidepool {

void take_times(const Program& part, const Replication& replication, Program& whole) {
  for (const std::vector<OpId>& ops : replication.ops) {
    assert(ops.size() == part.ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& from = part.ops[i];
      if (from.place != OpPlace::device) continue;
      Op& to = whole.ops[static_cast<std::size_t>(ops[i])];
      assert(to.algorithms.size() == from.algorithms.size());
      for (std::size_t a = 0; a < from.algorithms.size(); ++a) {
        to.algorithms[a].time = from.algorithms[a].time;
      }
    }
  }
}

}  // namespace tidepool
