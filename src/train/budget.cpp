#include "train/budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "ir/load_profile.h"

namespace tidepool {
namespace {

struct Rounds {
  std::int64_t sub_batch = 0;
  bool statistics = false;
};

/// Rounds of `sub_batch`, when these bytes are then enough; with other statistics of batch norm
/// where nothing else is.
std::optional<Rounds> fits(Bytes budget, const SmallerRounds& rounds, Bytes alignment,
                           std::int64_t sub_batch) {
  for (const bool statistics : {false, true}) {
    if (rounds.statistics && !statistics) continue;
    const auto program = rounds.in_rounds(sub_batch, statistics);
    if (program && smallest_budget(*program, alignment).bytes <= budget) {
      return Rounds{sub_batch, statistics};
    }
  }
  return std::nullopt;
}

/// Smaller rounds are looked for in programs of up to about this many ops: a batch of a million in
/// rounds of one sample has tens of millions, which take minutes and gigabytes to write down.
constexpr std::int64_t kMostOps = 100'000;

/// The largest of the halved sub-batches that fits.
std::optional<Rounds> largest_that_fits(Bytes budget, const SmallerRounds& rounds,
                                        Bytes alignment) {
  const std::int64_t sub_batch = rounds.program.sub_batch;
  const auto ops = static_cast<std::int64_t>(rounds.program.ops.size());
  std::vector<std::int64_t> halved;
  for (std::int64_t n = sub_batch; n > 1;) {
    n = (n + 1) / 2;
    if (ops * (sub_batch / n) > kMostOps) break;
    halved.push_back(n);
  }
  if (halved.empty()) return std::nullopt;
  std::optional<Rounds> found = fits(budget, rounds, alignment, halved.back());
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

Budget no_limit() { return {kNoDeviceLimit, 0}; }

bool limited(const Budget& budget) { return budget.device < kNoDeviceLimit; }

Result<Budget> resolve_budget(const BudgetSpec& spec, const Program& program, Bytes alignment) {
  const Budget budget{spec.device.resolve(unlimited_peak(program, alignment)), spec.host};
  const SmallestBudget smallest = smallest_budget(program, alignment);
  if (budget.device >= smallest.bytes) return budget;
  return fail(Error{ErrorCode::infeasible,
                    fmt::format("budget {} B ({}) cannot be met: {}", budget.device,
                                format_bytes(budget.device), explain(smallest, program)),
                    smallest.bytes});
}

SmallerRounds smaller_rounds(const Job& job) {
  return {job.program(), job.spec().sub_batch_statistics,
          [&job](std::int64_t sub_batch, bool statistics) {
            return job.in_rounds(sub_batch, statistics);
          }};
}

Result<Budget> resolve_budget(const BudgetSpec& spec, const SmallerRounds& rounds,
                              Bytes alignment) {
  auto budget = resolve_budget(spec, rounds.program, alignment);
  if (budget || budget.error().code != ErrorCode::infeasible || !rounds.in_rounds) return budget;
  // In bytes: with other rounds a percentage would be of another peak.
  const Bytes device = spec.device.resolve(unlimited_peak(rounds.program, alignment));
  const auto smaller = largest_that_fits(device, rounds, alignment);
  if (!smaller) return budget;
  Error error = budget.error();
  error.message += fmt::format("; {} B fit with `sub_batch` {}{}", device, smaller->sub_batch,
                               smaller->statistics && !rounds.statistics
                                   ? " `sub_batch_statistics`, which changes batch norm"
                                   : "");
  return fail(std::move(error));
}

}  // namespace tidepool
