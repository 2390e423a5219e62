// host_program: what a plan does with host memory, as a program of its own, so that the same
// lowering can plan host memory over a file. The first step towards three tiers.
//
// Note [Three tiers]. A plan for a device and its host is made as if the host had no end. Then host
// memory is planned as a device's arena is, over the file behind it: the stays of bytes on the host
// are the tensors; copies off the device write them, copies to the device read them, host ops use
// them as before. One such access follows the other as they start in the steady state of the first
// plan, and an access takes the time until the next one: what waits for nothing in between can be
// away in the file. `join_tiers` then puts the copies with the file between the instructions of the
// first plan, with the second one's addresses on the host, and derives all waits anew. So the model
// (accesses one after the other) decides only which copies there are and in which order; what they
// cost comes from the simulation of the whole.
#pragma once

#include <vector>

#include "base/result.h"
#include "cost/machine.h"
#include "schedule/schedule.h"

namespace tidepool {

/// The plan it is made of must be proved, and outlive it.
struct HostProgram {
  Program program;
  /// Instructions of the plan's steady state in the order of their starts: one of those in which
  /// they may be issued.
  std::vector<std::int32_t> order;
  std::vector<std::int32_t> instruction_of;  ///< per op of `program`
  std::vector<TensorId> tensor_of;           ///< per tensor of `program`: of the plan's
};

/// Of `plan` for `program` on `machine`, whose host arena may be of any size. Fails with
/// `bad_input` where a persistent tensor lies on the host and nothing ever uses it there.
Result<HostProgram> host_program(const Program& program, const Plan& plan, const Machine& machine);

/// The machine that `HostProgram::program` is planned for: host memory for a device, the file
/// behind it for a host. `machine` has such a file.
Machine host_and_file(const Machine& machine);

}  // namespace tidepool
