// How much tide depends on its seed: the measured trace under a limit on the load (no addresses)
// and in a budget (with addresses), once for each seed.
//   bench_tide_seeds TRACE.csv [SEEDS]
// "Met" counts the seeds whose stalls are at most 0.1 % of the ops' time. Both limits count the
// bytes that the trace does not list (cuDNN's handles and the like), as `reproduce fig9` does.
#include <fmt/format.h>

#include <cstdlib>

#include "base/file.h"
#include "cost/machine.h"
#include "ir/load_profile.h"
#include "planners/autoswap/autoswap_load.h"
#include "planners/planner.h"
#include "planners/tide/tide.h"
#include "planners/tide/tide_load.h"
#include "trace/recording.h"
#include "trace/trace_program.h"

namespace tidepool {
namespace {

constexpr Bytes kResident = 13'762'836;  // of the trace, see data/README.md
constexpr Bytes kLoad = Bytes{280} << 20;
constexpr Bytes kBudget = static_cast<Bytes>(288.4 * (1 << 20));
constexpr Nanos kLoadTime = std::chrono::seconds(20);
constexpr Nanos kPlanTime = std::chrono::seconds(30);
constexpr double kNoOverhead = 1e-3;

struct Trial {
  Nanos stall = Nanos::max();
  double seconds = 0;
};

/// As `reproduce fig9` searches: from the best of AutoSwap's selections.
Trial under_load(const Program& program, const Machine& machine, Bytes load, std::uint64_t seed) {
  const auto begin = Allowance::Clock::now();
  Lowering lowering(program, machine);
  const auto algorithms = least_workspace_algorithms(program);
  const SwapCandidates candidates(program, lowering.index(), machine, algorithms);
  WeightSearchOptions weights;
  weights.seed = seed;
  LoadSearch search(lowering, algorithms);
  search.add_seed(
      fastest_under_load(lowering.evaluator(), candidates, load, weights).selection.strategy);
  LoadSearchOptions options;
  options.seed = seed;
  options.allowance = begin + std::chrono::duration_cast<Allowance::Clock::duration>(kLoadTime);
  options.tolerated_stall = from_seconds(kNoOverhead * to_seconds(search.compute_time()));
  Trial trial;
  if (search.run(load, options)) trial.stall = search.iteration_time() - search.compute_time();
  trial.seconds = std::chrono::duration<double>(Allowance::Clock::now() - begin).count();
  return trial;
}

Trial with_addresses(const Program& program, const Machine& machine, Bytes budget,
                     std::uint64_t seed) {
  FixedWorkload workload(program);
  PlannerOptions options;
  options.seed = seed;
  options.time_limit = kPlanTime;
  const auto planned = make_plan(*make_tide(), workload, machine, {budget, 0}, options);
  if (!planned) return {};
  return {planned->lowered.iteration_time - planned->lowered.compute_time,
          to_seconds(planned->plan_time)};
}

Result<void> run(const std::string& path, std::uint64_t seeds) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  auto recording = read_recording(*text, path);
  if (!recording) return fail(recording.error());
  recording->resident = kResident;
  const auto machine = find_machine("gtx1080ti");
  if (!machine) return fail(machine.error());
  const auto traced = trace_program(*recording, machine->compute);
  if (!traced) return fail(traced.error());
  const Program& program = traced->program;
  const Bytes resident = align_up(traced->resident, machine->alignment());
  const Nanos compute = compute_time(program, least_workspace_algorithms(program));
  const Nanos most = from_seconds(kNoOverhead * to_seconds(compute));
  fmt::print("stalls of at most {:.3f} ms in {} of load, {} a search; in {} with addresses, {}\n",
             to_ms(most), format_bytes(kLoad), format_time(kLoadTime), format_bytes(kBudget),
             format_time(kPlanTime));
  std::uint64_t met_load = 0;
  std::uint64_t met_budget = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Trial load = under_load(program, *machine, kLoad - resident, seed);
    const Trial plan = with_addresses(program, *machine, kBudget - resident, seed);
    met_load += load.stall <= most ? 1 : 0;
    met_budget += plan.stall <= most ? 1 : 0;
    fmt::print("seed {:2}: load {:7.3f} ms after {:4.1f} s, addresses {:7.3f} ms after {:4.1f} s\n",
               seed, to_ms(load.stall), load.seconds, to_ms(plan.stall), plan.seconds);
    std::fflush(stdout);
  }
  fmt::print("met: {} of {} under the load, {} of {} with addresses\n", met_load, seeds, met_budget,
             seeds);
  return {};
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "bench_tide_seeds TRACE.csv [SEEDS]\n");
    return 2;
  }
  const auto done = tidepool::run(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10);
  if (done) return 0;
  fmt::print(stderr, "{}\n", done.error().message);
  return 1;
}
