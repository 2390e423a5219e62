#include "lower/away_spaces.h"

namespace tidepool {

std::vector<SpaceId> away_spaces(const Program& program, const Machine& machine) {
  std::vector<SpaceId> spaces(program.tensors.size(), machine.away());
  for (const Op& op : program.ops) {
    if (op.place != OpPlace::host) continue;
    for (const Access& a : op.accesses) {
      spaces[static_cast<std::size_t>(a.tensor)] = machine.host();
    }
  }
  return spaces;
}

}  // namespace tidepool
