// TimeModel: what ops and copies take on the device as it is now, by what plans took that ran on
// it.
#pragma once

#include <span>
#include <vector>

#include "cost/machine.h"
#include "lower/time_plan.h"
#include "schedule/lateness.h"
#include "schedule/schedule.h"
#include "train/observed_plan.h"

namespace tidepool {

/// All device ops of the plan that were measured, over what the program says of them; 1 where none
/// was, or the program says nothing.
double measured_factor(const Program& program, const ObservedPlan& seen);

// Note [Time model]. A profile may be of a busy machine or another state of it, a link slower than
// it says, an op takes longer while copies use the memory beside it, and a device takes a while to
// begin what could begin. Fitted to all plans that ran are what each op takes alone, latency and
// speed of each link, two terms of the device, so that
//
//   an op takes  alone * (1 + out * part beside copies out + in * part beside copies in),
//
// and two of each stream, so that
//
//   an instruction begins at  max(end of the one before it + next, end of its last wait + woken).
//
// The first two come of ops that ran with and without copies beside them: in several plans, and in
// the profile, where that is right (most of its times are those measured). Each is the other's
// residue, so they are found in turn. The others are means over all instructions that began for the
// one reason, or the other. A plan's time is then its replay, in which ops are slower by the copies
// that run beside them there; it need not be one that ran.
//
// Planners know of no such terms: their ops take the same time whatever is beside them. They are
// given each op as it was in the plan that ran (`charged`), and `next` is counted as the op's, as a
// profile does. Plans that copy about as much are then predicted right; how much less a plan takes
// that copies less is what `time` says afterwards, and a trial.

class TimeModel {
 public:
  /// What the profile says.
  TimeModel(Program program, Machine machine)
      : program_(std::move(program)), machine_(std::move(machine)) {}
  /// ... and what was seen since. Where nothing was it stays. Other algorithms of an op change in
  /// proportion, and ops that did not run by the factor of all.
  TimeModel(const Program& profile, const Machine& machine, std::span<const ObservedPlan> seen);

  /// Of an iteration in the long run.
  [[nodiscard]] Nanos time(const Plan& plan) const;
  /// Ops as they are in this plan, with what copies beside them cost.
  [[nodiscard]] Program charged(const Plan& plan) const;
  /// Ops with nothing beside them.
  [[nodiscard]] const Program& alone() const { return program_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  /// By how much an op is slower while copies run beside it all the time.
  [[nodiscard]] const Observation::Beside& slowdown() const { return slowdown_; }
  /// By stream; 0 where nothing was seen.
  [[nodiscard]] const std::vector<Lateness>& late() const { return late_; }

 private:
  [[nodiscard]] bool on_device(const Instruction& x) const;
  /// The plan with these times of its instructions, as a profile counts them.
  [[nodiscard]] TimedPlan timed(const Plan& plan, const Machine& machine,
                                std::span<const Nanos> times) const;
  /// Such times in the long run, and the time of an iteration.
  [[nodiscard]] Nanos settle(const Plan& plan, std::vector<Nanos>& times) const;

  Program program_;
  Machine machine_;
  Observation::Beside slowdown_;
  std::vector<Lateness> late_;
};

}  // namespace tidepool
