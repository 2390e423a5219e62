// Runs a random plan on a device that misbehaves and says how it ended. Shared by the fault tests
// of all devices.
#pragma once

#include <stdexcept>
#include <string>

#include "runtime/executor.h"
#include "runtime/reactive.h"
#include "support/random_plan.h"
#include "support/tag_runner.h"

namespace tidepool::testing {

struct FaultOutcome {
  bool finished = false;
  std::string error;  ///< of the DeviceError that ended it
  /// Of a finished run: what host ops saw and every final persistent value are the program's own.
  bool values_right = false;
};

inline bool same_values(const TagRunner& runner, const RandomPlan& plan,
                        std::span<const std::int32_t> algorithms, std::int64_t iterations) {
  TagRunner meaning(plan.program);
  run_in_order(plan.program, algorithms, iterations, meaning);
  return runner.seen() == meaning.seen() && runner.final_values() == meaning.final_values();
}

/// Any exception other than DeviceError goes through. `Runner`: a TagRunner for the device's
/// memory.
template <class Runner = TagRunner>
FaultOutcome run_plan_on(Device& device, const RandomPlan& plan, std::int64_t iterations) {
  Runner runner(plan.program);
  FaultOutcome outcome;
  try {
    Executor executor(plan.program, plan.lowered.plan, device, runner);
    executor.enter();
    executor.run(iterations);
    executor.exit();
  } catch (const DeviceError& error) {
    outcome.error = error.what();
    return outcome;
  }
  outcome.finished = true;
  outcome.values_right = same_values(runner, plan, plan.lowered.strategy.algorithms, iterations);
  return outcome;
}

/// The same program without its plan, inside the smallest budget it can run in.
template <class Runner = TagRunner>
FaultOutcome run_reactively_on(Device& device, const RandomPlan& plan, std::int64_t iterations) {
  Runner runner(plan.program);
  const auto algorithms = least_workspace_algorithms(plan.program);
  FaultOutcome outcome;
  try {
    Reactive reactive(plan.program, algorithms,
                      {smallest_budget(plan.program, device.alignment()).bytes,
                       Reactive::enough_host_bytes(plan.program, device.alignment())},
                      device, runner);
    reactive.enter();
    reactive.run(iterations);
    reactive.exit();
  } catch (const DeviceError& error) {
    outcome.error = error.what();
    return outcome;
  }
  outcome.finished = true;
  outcome.values_right = same_values(runner, plan, algorithms, iterations);
  return outcome;
}

/// Copies of one direction in an iteration of the steady state.
inline std::int64_t copies_in(const RandomPlan& plan, bool to_host) {
  std::int64_t count = 0;
  for (const Instruction& x : plan.lowered.plan.steady.instructions) {
    if (x.kind != InstructionKind::copy) continue;
    const Placement& to = plan.lowered.plan.placements[static_cast<std::size_t>(x.to)];
    if ((to.space != 0) == to_host) ++count;
  }
  return count;
}

}  // namespace tidepool::testing
