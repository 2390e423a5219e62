#include "planning/budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "ir/load_profile.h"
#include "lower/lower.h"

namespace tidepool {
namespace {

struct Fitting {
  std::int64_t sub_batch = 0;
  bool statistics = false;
};

/// Rounds of `sub_batch`, when these bytes are then enough; with other statistics of batch norm
/// where nothing else is.
std::optional<Fitting> fits(Bytes budget, const JobRounds& rounds, Bytes alignment,
                            std::int64_t sub_batch) {
  for (const bool statistics : {false, true}) {
    if (rounds.statistics && !statistics) continue;
    const auto program = rounds.in_rounds(sub_batch, statistics);
    if (program && smallest_budget(*program, alignment).bytes <= budget) {
      return Fitting{sub_batch, statistics};
    }
  }
  return std::nullopt;
}

/// The largest of the halved sub-batches that fits.
std::optional<Fitting> largest_that_fits(Bytes budget, const JobRounds& rounds, Bytes alignment) {
  const std::int64_t sub_batch = rounds.program.sub_batch;
  const auto ops = static_cast<std::int64_t>(rounds.program.ops.size());
  std::vector<std::int64_t> halved;
  for (std::int64_t n = sub_batch; n > 1;) {
    n = (n + 1) / 2;
    if (ops * (sub_batch / n) > rounds.most_ops) break;
    halved.push_back(n);
  }
  if (halved.empty()) return std::nullopt;
  std::optional<Fitting> found = fits(budget, rounds, alignment, halved.back());
  std::size_t low = 0;
  for (std::size_t high = halved.size() - 1; found && low < high;) {
    const std::size_t middle = (low + high) / 2;
    const auto now = fits(budget, rounds, alignment, halved[middle]);
    if (now) {
      found = now;
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return found;
}

}  // namespace

Bytes unlimited_peak(const Program& program, Bytes alignment) {
  const AccessIndex index(program);
  return load_profile(program, index, alignment, least_workspace_algorithms(program)).peak;
}

Result<Budget> resolve_budget(const BudgetSpec& spec, const JobRounds& rounds,
                              const Machine& machine) {
  const Bytes alignment = machine.alignment();
  Bytes peak = 0;  // that of the whole batch, whatever rounds it runs in
  if (spec.device.percent >= 0) {
    const auto whole = whole_batch_peak(rounds, alignment);
    if (!whole) return fail(whole.error());
    peak = *whole;
  }
  const Budget budget{spec.device.resolve(peak), spec.host};
  const Bytes device = budget.device;
  if (!rounds.offered.empty()) {
    const auto sizes = sizes_within(rounds, device, alignment);
    if (!sizes) return fail(sizes.error());
    return budget;
  }
  const SmallestBudget smallest = smallest_budget(rounds.program, alignment);
  if (device >= smallest.bytes) return budget;
  const SmallestBudget enough = smallest_to_stream(rounds.program, machine);
  Error error{ErrorCode::infeasible,
              fmt::format("{}: {}", not_met(device), explain(enough, rounds.program)),
              enough.bytes};
  if (!rounds.in_rounds || !rounds.suggest) return fail(std::move(error));
  if (const auto smaller = largest_that_fits(device, rounds, alignment)) {
    const bool changes = smaller->statistics && !rounds.statistics;
    error.message += fmt::format("; {} B fit with `sub_batch` {}{}", device, smaller->sub_batch,
                                 changes ? " `sub_batch_statistics`, which changes batch norm"
                                 : rounds.may_choose ? " (or `sub_batch` auto)"
                                                     : "");
  }
  return fail(std::move(error));
}

}  // namespace tidepool
