#include "planners/tide_load.h"

#include <algorithm>

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

Nanos unlimited_time(const Program& program, const std::vector<std::int32_t>& algorithms) {
  Nanos compute{0};
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.place != OpPlace::device) continue;
    compute += op.algorithms[static_cast<std::size_t>(algorithms[i])].time;
  }
  return compute;
}

}  // namespace

LoadSearch::LoadSearch(Lowering& lowering, std::vector<std::int32_t> algorithms)
    : lowering_(lowering),
      lead_(unlimited_time(lowering.program(), algorithms) / 80),
      timeline_(lowering, algorithms),
      gaps_(lowering, algorithms) {
  add_seed(lowering.everything_away(std::move(algorithms)));
}

void LoadSearch::add_seed(AwayGaps away) {
  seeds_.insert(seeds_.begin() + static_cast<std::ptrdiff_t>(given_), std::move(away));
  ++given_;
}

void LoadSearch::add_seed(const Strategy& strategy) {
  AwayGaps away;
  for (const Decision d : strategy.gaps) away.push_back(d == Decision::keep ? 0 : 1);
  add_seed(std::move(away));
}

bool LoadSearch::run(Bytes load_limit, const LoadSearchOptions& options) {
  // The timeline search ends by itself where no stall is needed; otherwise its best start is found
  // within some rounds of cooling.
  constexpr int kShareOfTime = 5;
  constexpr std::size_t kKept = 12;
  const auto now = Clock::now();
  const auto share = std::max<Clock::duration>(options.deadline - now, {}) / kShareOfTime;
  const AwayGaps start =
      seeds_.size() > given_ ? seeds_.back() : AwayGaps(lowering_.index().gaps().size(), 0);
  std::vector<AwayGaps> seeds{timeline_.run(
      load_limit, start, {options.seed, now + share, options.cancelled, options.compact})};
  GapSearchOptions search{options.seed, options.deadline, options.cancelled,
                          options.tolerated_stall, lead_};
  bool feasible = false;
  if (options.compact) {
    // What was found before copies less and so looks better among equals.
    search.deadline = now;
    feasible = gaps_.run(load_limit, seeds, search);
    search.deadline = options.deadline;
  }
  if (!feasible || gaps_.time() > gaps_.compute_time() + options.tolerated_stall) {
    seeds.insert(seeds.end(), seeds_.begin(), seeds_.end());
    feasible = gaps_.run(load_limit, seeds, search);
  }
  if (!feasible) return false;
  if (seeds_.size() >= given_ + kKept) {
    seeds_.erase(seeds_.begin() + static_cast<std::ptrdiff_t>(given_));
  }
  seeds_.push_back(gaps_.best());
  return true;
}

TideLeastLoad tide_least_load(Lowering& lowering, const std::vector<std::int32_t>& algorithms,
                              Bytes lower_bound, TideLeastLoad known, double tolerance,
                              const LoadSearchOptions& options) {
  const Nanos compute = unlimited_time(lowering.program(), algorithms);
  LoadSearch search(lowering, algorithms);
  search.add_seed(known.strategy);
  TideLeastLoad best = std::move(known);
  const Bytes precise = best.bytes / 1000;
  LoadSearchOptions one = options;
  one.tolerated_stall =
      Nanos{static_cast<Nanos::rep>(tolerance * static_cast<double>(compute.count()))};
  // Each try gets a part of the time left. A failure proves nothing, but is taken for an answer.
  constexpr int kShareOfTime = 6;
  Bytes low = lower_bound;
  while (best.bytes - low > precise && Clock::now() < options.deadline) {
    if (options.cancelled && options.cancelled()) break;
    const Bytes limit = low + (best.bytes - low) / 2;
    one.deadline = Clock::now() + (options.deadline - Clock::now()) / kShareOfTime;
    const bool found = search.run(limit, one) &&
                       search.iteration_time() - search.compute_time() <= one.tolerated_stall;
    if (found) {
      best = {limit, search.strategy()};
    } else {
      low = limit;
    }
    one.seed = hash_combine(one.seed, 1);
  }
  return best;
}

}  // namespace tidepool
