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
  // Which start leads to the best end cannot be told: each gets its part of the time, the first
  // from what is known. The timeline search ends by itself where no stall is needed; otherwise its
  // best start is found within some rounds of cooling.
  constexpr int kStarts = 3;
  constexpr int kShareOfTimeline = 5;
  constexpr std::size_t kKept = 12;
  found_.reset();
  for (int start = 0; start < kStarts; ++start) {
    const auto now = Clock::now();
    const auto left = std::max<Clock::duration>(options.deadline - now, {});
    if (start > 0 && (left <= Clock::duration{} || done(options))) break;
    GapSearchOptions search{hash_combine(options.seed, static_cast<std::uint64_t>(start)),
                            now + left / (kStarts - start), options.cancelled,
                            options.tolerated_stall, lead_};
    const AwayGaps from = start == 0 && seeds_.size() > given_
                              ? seeds_.back()
                              : AwayGaps(lowering_.index().gaps().size(), 0);
    std::vector<AwayGaps> seeds{
        timeline_.run(load_limit, from,
                      {search.seed, now + left / (kStarts - start) / kShareOfTimeline,
                       options.cancelled, options.compact})};
    if (options.compact) {
      // What was found before copies less and so looks better among equals.
      GapSearchOptions once = search;
      once.deadline = now;
      keep_best(gaps_.run(load_limit, seeds, once));
      if (done(options)) break;
    }
    if (start == 0) seeds.insert(seeds.end(), seeds_.begin(), seeds_.end());
    keep_best(gaps_.run(load_limit, seeds, search));
  }
  if (!found_) return false;
  if (seeds_.size() >= given_ + kKept) {
    seeds_.erase(seeds_.begin() + static_cast<std::ptrdiff_t>(given_));
  }
  seeds_.push_back(found_->away);
  return true;
}

void LoadSearch::keep_best(bool feasible) {
  if (!feasible || (found_ && gaps_.time() >= found_->iteration_time)) return;
  found_ = Found{gaps_.best(), gaps_.time(), gaps_.compute_time()};
}

bool LoadSearch::done(const LoadSearchOptions& options) const {
  if (options.cancelled && options.cancelled()) return true;
  return found_ && found_->iteration_time <= found_->compute_time + options.tolerated_stall;
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
