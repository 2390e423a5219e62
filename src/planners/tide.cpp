#include "planners/tide.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/random.h"
#include "planners/autoswap.h"
#include "planners/tide_load.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

class Tide : public Planner {
 public:
  Result<PlannerOutput> plan(Workload& workload, Lowering& lowering, const Budget& budget,
                             const PlannerOptions& options) override {
    const auto start = Clock::now();
    const auto deadline = start + options.time_limit;
    auto other = make_autoswap()->plan(workload, lowering, budget, options);
    if (!other) return fail(other.error());
    PlannerOutput output;
    output.lowered = std::move(other->lowered);
    if (!output.lowered) {
      auto lowered = lowering.lower(other->strategy, budget);
      if (!lowered) return fail(lowered.error());
      output.lowered = std::move(*lowered);
    }
    std::string origin = "autoswap";

    LoadSearch search(lowering, choose_algorithms(lowering.program(), options.algorithms));
    search.add_seed(output.lowered->strategy);
    // Down until the addresses fit, with little time for each limit; then halfway back up, with
    // more.
    Bytes fits = 0;
    Bytes fails = budget.device;
    Bytes limit = budget.device;
    for (std::uint64_t round = 0; Clock::now() < deadline && limit > 0; ++round) {
      if (output.lowered->iteration_time <= output.lowered->compute_time) break;
      if (options.cancelled && options.cancelled()) break;
      const auto left = deadline - Clock::now();
      LoadSearchOptions searching;
      searching.seed = hash_combine(options.seed, round);
      searching.deadline = Clock::now() + left / (fits > 0 ? 4 : 6);
      searching.cancelled = options.cancelled;
      searching.compact = round > 0;
      if (!search.run(limit, searching)) break;
      Bytes excess = 0;
      if (search.iteration_time() < output.lowered->iteration_time) {
        excess = place(lowering, search, budget, limit, left / (fits > 0 ? 4 : 20), options,
                       *output.lowered);
        if (output.lowered->load_limit == limit) {
          origin = fmt::format("the search under a load of {}", format_bytes(limit));
        }
      }
      if (excess == 0) {
        fits = std::max(fits, limit);
      } else {
        fails = limit;
      }
      if (fits > 0) {
        // What a limit gives differs from try to try: the interval never closes.
        if (fails - fits < budget.device / 200) fails = std::min(fails + fails / 50, budget.device);
        limit = fits + (fails - fits) / 2;
      } else if (round > 0) {
        limit -= std::max(excess / 2, limit / 100);
      }
      if (options.progress != nullptr) {
        options.progress->update(
            elapsed_share(start, options.time_limit),
            fmt::format("tide: {} of stalls", format_time(output.lowered->iteration_time -
                                                          output.lowered->compute_time)));
      }
    }
    output.strategy = output.lowered->strategy;
    output.lowered->plan.planner = "tide";
    output.strategy.planner = output.lowered->strategy.planner = "tide";
    output.notes.push_back(
        fmt::format("best from {}; {} evaluations", origin, search.evaluations()));
    return output;
  }

 private:
  /// Lowers what was found under `limit`; replaces `best` by what is faster. Returns by how much
  /// its addresses exceed the budget when nothing has to wait for them.
  static Bytes place(Lowering& lowering, LoadSearch& search, const Budget& budget, Bytes limit,
                     Nanos packing_time, const PlannerOptions& options, Lowered& best) {
    LowerOptions placing;
    placing.allow_streaming = false;
    placing.attempts = 1;
    placing.load_limit = limit;
    placing.seed = options.seed;
    placing.cancelled = options.cancelled;
    // The longest lead of copies in that costs no time: it forgives the latest copies. On a real
    // link, plans with short leads were some percent slower than predicted.
    constexpr int kLonger = 10;
    Bytes excess = 0;
    for (const Nanos lead : {Nanos::max(), kLonger * search.lead(), search.lead()}) {
      placing.lead = lead;
      placing.packing_time = lead == Nanos::max() ? Nanos{0} : packing_time / 2;
      placing.faster_than = best.iteration_time;
      auto lowered = lowering.lower(search.strategy(), budget, placing);
      excess = std::max<Bytes>(lowering.free_footprint() - budget.device, 0);
      if (lowered) best = std::move(*lowered);
      if (best.iteration_time <= search.iteration_time()) break;
    }
    return excess;
  }

  static double elapsed_share(Clock::time_point start, Nanos limit) {
    return std::min(
        1.0, std::chrono::duration<double>(Clock::now() - start).count() / to_seconds(limit));
  }
};

}  // namespace

std::unique_ptr<Planner> make_tide() { return std::make_unique<Tide>(); }

}  // namespace tidepool
