#include "other_algorithms.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "base/counted.h"
#include "base/quantity.h"
#include "ir/load_profile.h"

namespace tidepool::cli {

OtherAlgorithms::OtherAlgorithms(const Program& program, std::span<const std::int32_t> chosen) {
  if (chosen.size() != program.ops.size()) return;
  const auto least = least_workspace_algorithms(program);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] == least[i]) continue;
    ++ops;
    workspace = std::max(workspace, program.ops[i].algorithms[at(chosen[i])].workspace);
  }
  saved = compute_time(program, least) - compute_time(program, chosen);
}

std::string OtherAlgorithms::text() const {
  return fmt::format(
      "{} with another than the one of least workspace: {:.3f} ms less compute time, workspaces "
      "up to {}",
      counted(ops, "op"), to_ms(saved), format_bytes(workspace));
}

Json to_json(const OtherAlgorithms& others) {
  return {{"ops", others.ops},
          {"saved_ms", to_ms(others.saved)},
          {"workspace_bytes", others.workspace}};
}

}  // namespace tidepool::cli
