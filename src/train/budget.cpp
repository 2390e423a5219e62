#include "train/budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "base/quantity.h"
#include "ir/load_profile.h"
#include "lower/memory_sizes.h"

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

Error with_least_host_budget(Error error, Planner& planner, const Program& program,
                             const Machine& machine, const Budget& budget, PlannerOptions options) {
  if (error.code != ErrorCode::infeasible) return error;
  const auto within = within_memory(machine, budget);
  if (!within || within->host == 0) return error;
  options.time_limit = std::min<Nanos>(options.time_limit, std::chrono::milliseconds(50));
  options.evaluation_limit = 0;  // that would not limit every planner
  options.progress = nullptr;
  Machine any_host = machine;
  any_host.spaces[at(machine.host())].bytes = 0;
  const auto host_bytes = [&](Bytes host) -> std::optional<Bytes> {
    FixedWorkload workload(program);
    Budget tried = *within;
    tried.host = host;
    const auto planned = make_plan(planner, workload, any_host, tried, options);
    if (!planned) return std::nullopt;
    return planned->lowered.plan.host_bytes();
  };
  auto enough = host_bytes(0);
  if (!enough) return error;  // the host is not what it fails for
  const Bytes alignment = machine.spaces[at(machine.host())].alignment;
  Bytes low = within->host / alignment * alignment;
  while (*enough - low > alignment) {
    if (options.stop.requested()) {
      return {ErrorCode::interrupted, "interrupted while looking for the smallest host budget", {}};
    }
    const Bytes middle = align_up(low + (*enough - low) / 2, alignment);
    if (const auto used = host_bytes(middle)) {
      enough = used;
    } else {
      low = middle;
    }
  }
  error.smallest_feasible = *enough;
  error.of_host = true;
  const std::string named =
      budget.host > 0 ? "`host_budget`" : fmt::format("host memory of '{}',", machine.name);
  error.message = fmt::format(
      "{} {} B ({}) is too small for what leaves the device{}; the smallest feasible one is {} B "
      "({}) with planner '{}'",
      named, within->host, format_bytes(within->host),
      limited(budget) ? fmt::format(" at {} B ({})", budget.device, format_bytes(budget.device))
                      : "",
      *enough, format_bytes_up(*enough), planner.name());
  return error;
}

}  // namespace tidepool
