#include "decision_report.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/counted.h"
#include "base/json.h"
#include "base/quantity.h"
#include "schedule/outcomes.h"
#include "terminal.h"

namespace tidepool::cli {

Json decisions(const PlanFile& file) {
  const AccessIndex index(file.program);
  const std::vector<Outcome> outcome = outcomes(file.program, index, file.strategy.gaps);
  Json list = Json::array();
  for (std::size_t g = 0; g < file.strategy.gaps.size(); ++g) {
    const Gap& gap = index.gaps()[g];
    if (gap.kind != GapKind::device) continue;
    const auto name = [&](OpId op) { return file.program.ops[static_cast<std::size_t>(op)].name; };
    const Tensor& tensor = file.program.tensors[static_cast<std::size_t>(gap.tensor)];
    list.push_back({{"tensor", tensor.name},
                    {"bytes", tensor.bytes},
                    {"from", name(gap.from)},
                    {"to", name(gap.to)},
                    {"wraps", gap.wraps},
                    {"decision", to_string(outcome[g])},
                    {"reason", file.strategy.reasons.empty() ? "" : file.strategy.reasons[g]}});
  }
  return list;
}

void print_decisions(const PlanFile& file) {
  const Json list = decisions(file);
  std::int64_t kept = 0;
  Bytes kept_bytes = 0;
  for (const Json& d : list) {
    if (d["decision"] == "keep") {
      ++kept;
      kept_bytes += d["bytes"].get<Bytes>();
      continue;
    }
    say("  {:9} {:28} {:>10}  after '{}' until '{}'{}: {}\n", d["decision"].get<std::string>(),
        d["tensor"].get<std::string>(), format_bytes(d["bytes"].get<Bytes>()),
        d["from"].get<std::string>(), d["to"].get<std::string>(),
        d["wraps"].get<bool>() ? " of the next iteration" : "", d["reason"].get<std::string>());
  }
  say("  keep      the other {} ({} in all): the load fits without moving them\n",
      counted(kept, "gap"), format_bytes(kept_bytes));
}

}  // namespace tidepool::cli
