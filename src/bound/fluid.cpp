#include "bound/fluid.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/at.h"
#include "bound/clp/clp_calls.h"
#include "bound/relaxation.h"
#include "ir/load_profile.h"

namespace tidepool {
namespace {

/// Making the program has taken some of the time; the certificate takes about as much again.
FluidOptions what_is_left(FluidOptions options, std::chrono::steady_clock::time_point start) {
  if (options.time_limit != Nanos::max()) {
    options.time_limit -= 2 * (std::chrono::steady_clock::now() - start);
  }
  return options;
}

}  // namespace

std::string beyond_one_device(const Program& program) {
  for (const Op& op : program.ops) {
    if (op.device == 0) continue;
    return fmt::format("op '{}' runs on device {}: the bound is for one device", op.name,
                       op.device);
  }
  return {};
}

FluidBound fluid_bound(const FluidProblem& problem, Bytes limit, const FluidOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  FluidBound bound;
  const auto& [program, index, machine, algorithms, recompute, host_limit, choices] = problem;
  bound.refused = beyond_one_device(program);
  if (!bound.refused.empty()) return bound;
  // The last buffer of an arena needs no padding.
  limit = align_up(limit, machine.alignment());
  bound.feasible = true;
  const std::vector<Bytes> unmovable = unmovable_load(program, machine.alignment());
  for (OpId k = 0; k < static_cast<OpId>(program.ops.size()) && bound.feasible; ++k) {
    bound.feasible =
        working_set(program, k, machine.alignment(), algorithms[at(k)], unmovable[at(k)]) <= limit;
  }
  if (!bound.feasible) return bound;
  const LoadProfile load = load_profile(program, index, machine.alignment(), algorithms);
  if (load.peak <= limit && choices.empty()) {
    bound.share.assign(index.gaps().size(), 0);
    return bound;
  }
  bound.stopped = options.time_limit <= Nanos{0};
  bound.feasible = !bound.stopped;
  if (bound.stopped) return bound;
  if (find_clp() == nullptr) {
    bound.refused = clp_missing();
    bound.feasible = false;
    return bound;
  }
  const Relaxation relaxation(problem, load, limit);
  const auto solution = relaxation.solve(what_is_left(options, start));
  bound.stopped = solution.stopped;
  // Too little host memory, and no file behind it.
  const bool none = host_limit > 0 && solution.values.empty();
  bound.feasible = !bound.stopped && !none;
  bound.overhead =
      Nanos{static_cast<Nanos::rep>(std::max(0.0, std::floor(relaxation.nanos(solution.bound))))};
  bound.share = relaxation.shares(solution);
  return bound;
}

FluidLoad fluid_least_load(const FluidProblem& problem, Nanos stalls, const FluidOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  FluidLoad load;
  const auto& [program, index, machine, algorithms, recompute, host_limit, choices] = problem;
  if (!beyond_one_device(program).empty()) return load;
  load.stopped = options.time_limit <= Nanos{0};
  if (load.stopped) return load;
  const LoadProfile profile = load_profile(program, index, machine.alignment(), algorithms);
  const Relaxation relaxation(problem, profile, std::nullopt, std::max(stalls, Nanos{0}));
  const auto solution = relaxation.solve(what_is_left(options, start));
  load.stopped = solution.stopped;
  load.bytes = static_cast<Bytes>(std::max(0.0, std::floor(relaxation.bytes(solution.bound))));
  load.share = relaxation.shares(solution);
  return load;
}

}  // namespace tidepool
