// The plan of several devices, made of the plan of one device's part: when new weights go back to
// the devices is decided by simulation.
#pragma once

#include "ir/replication.h"
#include "lower/budget.h"
#include "lower/lower.h"

namespace tidepool {

/// A program of several devices, as copies of the part of one.
struct ParallelProgram {
  const Program& part;
  const Program& whole;  ///< without times
  const Replication& replication;
  bool naive = false;  ///< both are of naive accumulation
};

/// A machine of one device with so many of them. The memory of presets' devices is no limit, here
/// as for one of them.
Machine machine_of_devices(const Machine& one, std::int32_t devices);

/// What is left for the plan of one device: an equal part of the host bytes beside those of
/// weights, their state and the gradients that are reduced; with naive accumulation what that state
/// and one gradient leave of the device. `infeasible` where nothing is; `in_smaller_rounds`: the
/// part need not fit in its own, as it may come to run in smaller ones.
Result<Budget> budget_of_part(const Budget& budget, const ParallelProgram& program,
                              const Machine& machine, bool in_smaller_rounds = false);

/// An error about the device bytes of a part of the batch, in terms of the device that needs most:
/// with naive accumulation the first, which has the state of weights and a gradient besides.
Error of_first_device(Error error, const ParallelProgram& program, Bytes alignment);

/// An error of planning for one device inside the `part` of a budget, in terms of the whole one.
Error of_all_devices(Error error, const Budget& whole, const Budget& part,
                     const ParallelProgram& program, const Machine& machine);

/// Bytes of the largest arena of a device: what a budget for each has to allow.
Bytes largest_device(const Plan& plan);

/// Why plans of several devices have no optimality gap: bounds are of one, to which the copies of
/// gradients are work that no plan avoids.
inline constexpr const char* kNoGapOfSeveral = "bounds are of one device";

struct ParallelPlan {
  Plan plan;
  Program program;         ///< the whole, with times
  Machine machine;         ///< of all devices
  Nanos iteration_time{};  ///< simulated
  Nanos check_time{};
};

/// How long the part's plan lets gradients and new weights take depends on all devices, on their
/// bus and on the host: the copies of new weights are put where the simulation has room for them.
/// The result is proved. `machine` is of all devices, `host_cores` update weights.
Result<ParallelPlan> parallel_plan(const ParallelProgram& program, const Plan& part,
                                   const Machine& machine, const Budget& budget,
                                   std::int32_t host_cores = 1);

/// A plan of one device as one of all devices' streams and arenas, of which it uses those of the
/// first: so that it can share an open device with `like`, whose first streams are of the same
/// kinds.
Plan on_first_device(Plan plan, const Plan& like);

}  // namespace tidepool
