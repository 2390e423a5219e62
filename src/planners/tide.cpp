#include "planners/tide.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

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
    Bytes limit = budget.device;
    for (std::uint64_t round = 0; Clock::now() < deadline && limit > 0; ++round) {
      if (output.lowered->iteration_time <= output.lowered->compute_time) break;
      if (options.cancelled && options.cancelled()) break;
      // A part of what is left, so that tighter limits get their turn.
      const auto until = Clock::now() + (deadline - Clock::now()) / 3;
      if (!search.run(limit,
                      {hash_combine(options.seed, round), until, options.cancelled, Nanos{0}})) {
        break;
      }
      if (search.iteration_time() >= output.lowered->iteration_time) break;
      const Bytes excess = place(lowering, search.strategy(), budget, limit,
                                 std::min<Nanos>(deadline - Clock::now(), options.time_limit) / 10,
                                 options.seed, *output.lowered);
      if (output.lowered->load_limit == limit) {
        origin = fmt::format("the search under a load of {}", format_bytes(limit));
      }
      // Half of what the addresses need more, at least a hundredth.
      limit -= std::max(excess / 2, limit / 100);
      if(getenv("TIDE_DEBUG"))fmt::print("limit {} stall {} excess {} best stall {}\n",format_bytes(search.evaluations()),format_time(search.iteration_time()-search.compute_time()),format_bytes(excess),format_time(output.lowered->iteration_time-output.lowered->compute_time));
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
    output.notes.push_back(fmt::format("best from {}; {} evaluations", origin, search.evaluations()));
    return output;
  }

 private:
  /// Lowers what was found under `limit`; replaces `best` by what is faster. Returns by how much
  /// its addresses exceed the budget when nothing has to wait for them.
  static Bytes place(Lowering& lowering, const Strategy& strategy, const Budget& budget,
                     Bytes limit, Nanos packing_time, std::uint64_t seed, Lowered& best) {
    LowerOptions placing;
    placing.allow_streaming = false;
    placing.attempts = 1;
    placing.load_limit = limit;
    placing.packing_time = packing_time;
    placing.seed = seed;
    auto lowered = lowering.lower(strategy, budget, placing);
    const bool waits = !lowered || lowered->added_waits > 0;
    if (lowered && lowered->iteration_time < best.iteration_time) best = std::move(*lowered);
    if (!waits) return 0;
    placing.packing_time = Nanos{0};
    constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max() / 4;
    const auto unbounded = lowering.lower(strategy, {kUnlimited, budget.host}, placing);
    return unbounded ? std::max<Bytes>(unbounded->plan.device_bytes - budget.device, 0) : 0;
  }

  static double elapsed_share(Clock::time_point start, Nanos limit) {
    return std::min(
        1.0, std::chrono::duration<double>(Clock::now() - start).count() / to_seconds(limit));
  }
};

}  // namespace

std::unique_ptr<Planner> make_tide() { return std::make_unique<Tide>(); }

}  // namespace tidepool
