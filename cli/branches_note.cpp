#include "branches_note.h"

#include <fmt/format.h>

#include <bit>

namespace tidepool::cli {

int count_branches(const Program& program) {
  std::uint32_t used = 0;
  for (const Op& op : program.ops) {
    if (op.guard != kNone) used |= 1U << op.guard;
  }
  return std::popcount(used);
}

std::string branches_note(const Program& program, std::string_view indent) {
  const int branches = count_branches(program);
  if (branches == 0) return {};
  return fmt::format(
      "{}times are of iterations that run all {} branches; a training skips some, "
      "which takes less\n",
      indent, branches);
}

}  // namespace tidepool::cli
