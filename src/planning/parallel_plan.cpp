#include "planning/parallel_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/at.h"
#include "base/quantity.h"
#include "check/check.h"
#include "ir/load_profile.h"
#include "lower/compose.h"
#include "planning/budget.h"
#include "sim/simulate.h"

namespace tidepool {
namespace {

/// Where the simulation has room for new weights: before the first copy to device 0 that starts
/// when a weight is new. Behind it they would wait for a copy that waits longer.
std::vector<std::int32_t> room_for_new_weights(const PartPlan& input, const Composed& composed) {
  constexpr int kIterations =
      5;  // the last but one is in the steady state, its successor beside it
  const Simulation run = simulate(input.whole, composed.plan, input.machine, kIterations);
  const std::vector<Span>& spans = run.iterations[kIterations - 2];
  const auto& list = input.plan.steady.instructions;
  std::vector<std::int32_t> before(input.part.tensors.size(),
                                   static_cast<std::int32_t>(list.size()));
  for (std::size_t t = 0; t < before.size(); ++t) {
    if (composed.update[t] == kNone) continue;
    const Nanos is_new = spans[at(composed.update[t])].end;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool in = list[i].kind == InstructionKind::copy &&
                      input.plan.kind_of(list[i].from) == SpaceKind::host;
      const std::int32_t place = composed.place[0][i];
      if (!in || place == kNone || spans[at(place)].start < is_new) continue;
      before[t] = static_cast<std::int32_t>(i);
      break;
    }
  }
  return before;
}

/// What is there once, whatever the number of devices: weights, and their state.
struct SharedBytes {
  Bytes weights = 0;
  Bytes state = 0;       ///< of optimizers
  Bytes statistics = 0;  ///< that change on the host with naive accumulation, too
  Bytes largest = 0;     ///< weight, and its gradient
};

/// The host bytes of a plan for several devices that the plan of a part does not have.
struct HostBytesBeside {
  Bytes once = 0;
  Bytes of_each = 0;  ///< device: what reductions read has bytes of its own
};

SharedBytes shared_bytes(const ParallelProgram& program, Bytes alignment) {
  std::vector<char> of_part(program.whole.tensors.size(), 0);
  SharedBytes sum;
  const auto aligned = [&](std::size_t t) {
    return align_up(program.whole.tensors[t].bytes, alignment);
  };
  for (const std::vector<TensorId>& tensors : program.replication.tensors) {
    for (const TensorId t : tensors) of_part[at(t)] = 1;
  }
  for (std::size_t t = 0; t < program.part.tensors.size(); ++t) {
    if (!program.replication.is_shared(static_cast<TensorId>(t))) continue;
    const Bytes bytes = aligned(at(program.replication.tensors[0][t]));
    sum.weights += bytes;
    sum.largest = std::max(sum.largest, bytes);
  }
  for (std::size_t t = 0; t < of_part.size(); ++t) {
    if (of_part[t] != 0) continue;
    const bool state = program.whole.tensors[t].kind == TensorKind::optimizer_state;
    (state ? sum.state : sum.statistics) += aligned(t);
  }
  return sum;
}

HostBytesBeside host_bytes_beside(const ParallelProgram& program, Bytes alignment) {
  const SharedBytes shared = shared_bytes(program, alignment);
  HostBytesBeside beside{shared.weights + shared.statistics + (program.naive ? 0 : shared.state)};
  for (std::size_t i = 0; i < program.part.ops.size(); ++i) {
    const Op& op = program.part.ops[i];
    if (op.place != OpPlace::host || !program.replication.is_shared(static_cast<OpId>(i))) continue;
    for (const Access& a : op.accesses) {
      if (program.replication.is_shared(a.tensor)) continue;
      beside.of_each += align_up(program.part.tensors[at(a.tensor)].bytes, alignment);
    }
  }
  return beside;
}

}  // namespace

Machine machine_of_devices(const Machine& one, std::int32_t devices) {
  Machine machine = one;
  if (is_preset(one)) machine.set_device_memory(0);
  return with_devices(machine, devices);
}

Result<Budget> budget_of_part(const Budget& budget, const ParallelProgram& program,
                              const Machine& machine, bool in_smaller_rounds) {
  const Bytes alignment = machine.spaces[at(machine.host())].alignment;
  Budget part = budget;
  if (program.naive && limited(budget)) {
    const auto [weights, state, statistics, largest] = shared_bytes(program, alignment);
    const Bytes least = smallest_budget(program.part, alignment).bytes;
    part.device = std::max<Bytes>(0, part.device - state - largest);
    if (part.device < least && !in_smaller_rounds) {
      const Bytes enough = least + state + largest;
      return fail(
          Error{ErrorCode::infeasible,
                fmt::format("the budget of {} B ({}) is too small: {} B ({}) are needed, of "
                            "which the state of weights and a gradient of another device "
                            "take {} on device 0",
                            budget.device, format_bytes(budget.device), enough,
                            format_bytes_up(enough), format_bytes(state + largest)),
                enough});
    }
  }
  if (budget.host == 0) return part;
  const auto [once, of_each] = host_bytes_beside(program, alignment);
  const std::int32_t devices = program.replication.devices;
  part.host = (budget.host - once) / devices / alignment * alignment - of_each;
  if (part.host > 0) return part;
  const Bytes taken = once + devices * of_each;
  return fail(
      Error{ErrorCode::infeasible,
            fmt::format("`host_budget` {} B ({}): what all devices have there whatever the plan, "
                        "weights, what updates them and gradients, takes {} B ({})",
                        budget.host, format_bytes(budget.host), taken, format_bytes_up(taken)),
            std::nullopt});
}

namespace {

/// Of the ops that no device has in its part there is a time only where the machine has a model.
Program with_times(const ParallelProgram& program, const Machine& machine,
                   std::int32_t host_cores) {
  Program whole = program.whole;
  if (machine.compute.peak_flops > 0) apply_cost_model(machine, whole);
  take_times(program.part, program.replication, whole);
  apply_host_model(machine, host_cores, whole);
  return whole;
}

/// The fastest of some, by simulation.
Result<Composed> compose_overlapped(const PartPlan& input) {
  constexpr int kRounds = 3;
  std::optional<Composed> best;
  Nanos least = Nanos::max();
  std::vector<std::int32_t> new_weight_before;
  for (int round = 0; round < kRounds; ++round) {
    auto composed = compose(input, new_weight_before);
    if (!composed) return composed;
    const Nanos time = long_run(input.whole, composed->plan, input.machine).iteration_time;
    auto next = room_for_new_weights(input, *composed);
    if (time < least) {
      least = time;
      best = std::move(*composed);
    }
    if (next == new_weight_before) break;
    new_weight_before = std::move(next);
  }
  return std::move(*best);
}

}  // namespace

Result<ParallelPlan> parallel_plan(const ParallelProgram& program, const Plan& part,
                                   const Machine& machine, const Budget& budget,
                                   std::int32_t host_cores) {
  ParallelPlan made;
  made.program = with_times(program, machine, host_cores);
  made.machine = machine;
  const PartPlan input{program.part, part, made.program, program.replication, machine};
  auto composed = program.naive ? compose_naive(input) : compose_overlapped(input);
  if (!composed) return fail(composed.error());
  made.plan = std::move(composed->plan);
  made.iteration_time = long_run(made.program, made.plan, machine).iteration_time;
  const std::vector<Bytes> budgets = space_budgets(machine, budget);
  for (SpaceId s = 0; s < std::ssize(made.plan.arenas); ++s) {
    const Bytes needed = made.plan.arenas[at(s)].bytes;
    if (needed <= budgets[at(s)]) continue;
    return fail(Error{
        ErrorCode::infeasible,
        fmt::format("{} needs {} B ({}), the budget is {} B ({})", space_name(machine, s), needed,
                    format_bytes_up(needed), budgets[at(s)], format_bytes(budgets[at(s)])),
        std::nullopt});
  }
  const auto start = std::chrono::steady_clock::now();
  if (auto proof = check(made.program, made.plan, check_limits(machine, budget)); !proof) {
    return fail(proof.error());
  }
  made.check_time = std::chrono::steady_clock::now() - start;
  return made;
}

Error of_first_device(Error error, const ParallelProgram& program, Bytes alignment) {
  if (!program.naive || error.of_host || !error.smallest_feasible) return error;
  const auto [weights, state, statistics, largest] = shared_bytes(program, alignment);
  *error.smallest_feasible += state + largest;
  error.message = fmt::format(
      "with `accumulation` naive the smallest feasible budget is {} B ({}): on device "
      "0 the state of weights and a gradient of another device take {} besides its "
      "part of the batch, and of what is left for that {}",
      *error.smallest_feasible, format_bytes_up(*error.smallest_feasible),
      format_bytes(state + largest), error.message);
  return error;
}

Error of_all_devices(Error error, const Budget& whole, const Budget& part,
                     const ParallelProgram& program, const Machine& machine) {
  if (limited(whole)) {
    error =
        of_first_device(std::move(error), program, machine.spaces[at(machine.host())].alignment);
  }
  if (!error.of_host || whole.host == 0) return error;
  const std::int32_t devices = program.replication.devices;
  error.message += fmt::format(
      "; {} B ({}) is the share of each of {} devices in the host's {} B ({}), beside weights, "
      "what updates them and gradients",
      part.host, format_bytes(part.host), devices, whole.host, format_bytes(whole.host));
  if (!error.smallest_feasible) return error;
  const auto [once, of_each] =
      host_bytes_beside(program, machine.spaces[at(machine.host())].alignment);
  error.smallest_feasible = once + devices * (*error.smallest_feasible + of_each);
  error.message += fmt::format("; {} B ({}) are enough for all", *error.smallest_feasible,
                               format_bytes_up(*error.smallest_feasible));
  return error;
}

Bytes largest_device(const Plan& plan) {
  Bytes most = 0;
  for (const Arena& arena : plan.arenas) {
    if (arena.kind == SpaceKind::device) most = std::max(most, arena.bytes);
  }
  return most;
}

Plan on_first_device(Plan plan, const Plan& like) {
  const SpaceId host = like.host();
  std::vector<Arena> arenas = like.arenas;
  for (Arena& arena : arenas) arena.bytes = 0;
  arenas[0] = plan.arenas[0];
  arenas[at(host)] = plan.arenas[1];
  for (Placement& p : plan.placements) {
    if (p.space != 0) p.space = host;
  }
  plan.arenas = std::move(arenas);
  plan.streams = like.streams;
  return plan;
}

}  // namespace tidepool
