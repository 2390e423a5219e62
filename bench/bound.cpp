// How tight each bound is in a time: of the programs of plan files with the algorithms they have,
// and of chains of some ops (chain_program.h), at 30 to 75 % of the peak, recomputation included.
// Shares are of the compute time; seconds are the processor's.
//   bench_bound [--time-limit SECONDS] [--chain OPS]... [PLAN.json]...
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <string_view>

#include "base/quantity.h"
#include "bound/binding_op.h"
#include "bound/tightest.h"
#include "chain_program.h"
#include "ir/load_profile.h"
#include "planning/algorithm_choice.h"
#include "planning/saved_plan.h"

namespace tidepool {
namespace {

constexpr int kShares[] = {30, 45, 60, 75};  // of the peak load with least workspaces

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void measure(std::string_view name, const Program& program, const Machine& machine,
             std::span<const std::int32_t> algorithms, const FluidOptions& options) {
  const AccessIndex index(program);
  const auto least = least_workspace_algorithms(program);
  const Bytes peak = load_profile(program, index, machine.alignment(), least).peak;
  const FluidProblem problem{program, index, machine, algorithms, true};
  const double compute = to_seconds(compute_time(program, algorithms));
  const auto share = [&](Nanos overhead) { return 100 * to_seconds(overhead) / compute; };
  for (const int percent : kShares) {
    const Bytes limit = peak * percent / 100;
    const double begun = processor_seconds();
    const FluidBound fluid = fluid_bound(problem, limit, options);
    const double solved = processor_seconds();
    if (!fluid.feasible && !fluid.stopped) continue;
    const TightestBound tightest = tightest_bound(problem, limit, options);
    const double ended = processor_seconds();
    fmt::print(
        "{:28} {:6} ops {:3} %  fluid {:>7} in {:5.2f} s  binding op {:7.3f}  tightest {:7.3f} in "
        "{:5.2f} s: {}{}\n",
        name, program.ops.size(), percent,
        fluid.stopped ? "-" : fmt::format("{:.3f}", share(fluid.overhead)), solved - begun,
        share(binding_op_bound(problem, limit)), share(tightest.fluid.overhead), ended - solved,
        to_string(tightest.by), tightest.fluid.stopped ? ", stopped" : "");
    std::fflush(stdout);
  }
}

int main_of(int argc, char** argv) {
  FluidOptions options;
  options.time_limit = std::chrono::seconds(2);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--time-limit" && i + 1 < argc) {
      options.time_limit = from_seconds(std::atof(argv[++i]));
    } else if (argument == "--chain" && i + 1 < argc) {
      const Program program = bench::ChainProgram(std::atoi(argv[++i])).write();
      measure("chain", program, bench::chain_machine(), least_workspace_algorithms(program),
              options);
    } else {
      const auto saved = read_saved_plan(std::string(argument));
      if (!saved) {
        fmt::print(stderr, "{}\n", saved.error().message);
        return 1;
      }
      const PlanFile& file = saved->file;
      measure(file.program.name, file.program, file.machine,
              chosen_algorithms(file.program, file.plan), options);
    }
  }
  return 0;
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) { return tidepool::main_of(argc, argv); }
