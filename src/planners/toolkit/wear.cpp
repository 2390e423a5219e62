#include "planners/toolkit/wear.h"

#include "base/at.h"
#include "lower/away_spaces.h"

namespace tidepool {

bool leaves_to_file(const Machine& machine) {
  return machine.spaces[at(machine.away())].kind == SpaceKind::file;
}

Nanos as_fast_as(Nanos fastest) {
  constexpr int kParts = 200;
  return fastest + fastest / kParts;
}

std::vector<Bytes> bytes_written_when_away(const Program& program, const Machine& machine) {
  std::vector<Bytes> written(program.tensors.size(), 0);
  if (!leaves_to_file(machine)) return written;
  const std::vector<SpaceId> away = away_spaces(program, machine);
  for (std::size_t t = 0; t < written.size(); ++t) {
    const MemorySpace& space = machine.spaces[at(away[t])];
    if (space.kind == SpaceKind::file) {
      written[t] = align_up(program.tensors[t].bytes, space.alignment);
    }
  }
  return written;
}

}  // namespace tidepool
