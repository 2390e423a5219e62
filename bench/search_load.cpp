// What tide's search finds under limits on the load alone, and what addresses then cost: where a
// plan stays far from its bound, is it the search or the addresses?
//   bench_search_load PROGRAM.json BUDGET_PERCENT SECONDS [LIMIT_PERCENT...]
// One line a load limit (in percent of the budget): overhead by the search, then that of the plan
// with addresses in the whole budget, and the bytes that addresses without waits would take.
#include <fmt/format.h>

#include <cstdlib>

#include "base/file.h"
#include "base/json.h"
#include "cost/machine.h"
#include "ir/load_profile.h"
#include "ir/program_json.h"
#include "planners/planner_context.h"
#include "planners/tide/tide_load.h"

namespace tidepool {
namespace {

Result<void> run(const std::string& path, double budget_part, double seconds,
                 std::span<const double> limits) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  const auto program =
      read_json(*text, path, [](const JsonCursor& json) { return program_from_json(json); });
  if (!program) return fail(program.error());
  const auto machine = find_machine("gtx1080ti");
  if (!machine) return fail(machine.error());
  Lowering lowering(*program, *machine);
  const auto algorithms = least_workspace_algorithms(*program);
  const Bytes peak =
      load_profile(*program, lowering.index(), machine->alignment(), algorithms).peak;
  const auto budget = static_cast<Bytes>(budget_part * static_cast<double>(peak));
  LoadSearch search(lowering, algorithms);
  const double compute = to_seconds(search.compute_time());
  for (const double part : limits) {
    LoadSearchOptions options;
    options.allowance =
        Allowance::Clock::now() + std::chrono::duration_cast<Allowance::Clock::duration>(
                                      std::chrono::duration<double>(seconds));
    const auto limit = static_cast<Bytes>(part * static_cast<double>(budget));
    const std::int64_t before = search.evaluations();
    if (!search.run(limit, options)) {
      fmt::print("{:5.1f} %: nothing feasible\n", 100 * part);
      continue;
    }
    LowerOptions placing;
    placing.load_limit = limit;
    placing.attempts = 1;
    placing.packing.time = from_seconds(seconds / 4);
    placing.lead = search.lead();
    const Trial trial = place(lowering, search.strategy(), {budget, 0}, placing);
    fmt::print(
        "{:5.1f} %: stalls {:7.2f} % of the ops' time, placed {:7.2f} %, needed {:6.2f} % of "
        "the budget; {} evaluations\n",
        100 * part, 100 * (to_seconds(search.iteration_time()) / compute - 1),
        trial.lowered ? 100 * (to_seconds(trial.lowered->iteration_time) / compute - 1) : -1,
        100 * static_cast<double>(trial.needed) / static_cast<double>(budget),
        search.evaluations() - before);
    std::fflush(stdout);
  }
  return {};
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr,
               "bench_search_load PROGRAM.json BUDGET_PERCENT SECONDS [LIMIT_PERCENT...]\n");
    return 2;
  }
  std::vector<double> limits;
  for (int i = 4; i < argc; ++i) limits.push_back(std::atof(argv[i]) / 100);
  if (limits.empty()) limits = {1.0, 0.95, 0.9, 0.85, 0.8, 0.75};
  const auto done = tidepool::run(argv[1], std::atof(argv[2]) / 100, std::atof(argv[3]), limits);
  if (done) return 0;
  fmt::print(stderr, "{}\n", done.error().message);
  return 1;
}
