// The fluid relaxation of swapping and recomputation: a linear program whose optimum no schedule
// can beat that runs each op once, in program order, on the compute stream of the first device, and
// some again in between (clones) where the problem says `recompute`, and copies between the device
// and other spaces, one copy at a time over each link (in all where there is one that is not
// duplex). Several links count as one, see Note [Several links] in bound/device_links.h.
//
// Note [Fluid relaxation]. Tensors are divisible and addresses do not matter. Variables are, per
// absence (bound/absences.h), the part x that is away and the part y <= x that is copied out for
// it; and, at the start and the end of every op, the bytes O copied out, I copied in and F freed so
// far.
//   - What a byte of an absence needs on the host (here: in any other space) was copied out for
//     that absence or for an earlier one of the same value: the y up to it sum up to at least x.
//     No y where a host op has the value or where it is the same in every iteration; no x, and
//     nothing taken, where `to` overwrites.
//   - x is 1 for what a host op makes anew in every iteration (Note [Uploads] in absences.h).
//   - O is at most the y of values made so far: a copy out may run while the tensor is still used.
//   - What is freed is at most O plus the parts x - y that the host had, and at most the x of
//     absences begun.
//   - I is at least the x of absences that have ended, and at most what is freed.
//   - O and I grow no faster than their links; both together where the link is not duplex.
//   - What is live, minus what is freed, plus I, stays within the limit while every op runs.
// Copies move a tensor's own bytes; memory counts aligned ones: the padding of what is away is free
// at once. A copy's latency counts against the length of the whole iteration only. Stalls before
// ops are variables; the optimum is their least sum. Time is cyclic: what wraps over the end of the
// iteration appears at its start. Iteration after iteration any schedule gives values that satisfy
// all this on average, as every condition is linear; so the mean of its stalls is no less. The
// value returned is certified (Note [Certificate]).
//
// Note [Whole tensors]. A tensor has its bytes from the begin of its copy in to the end of its copy
// out, all of them. So where large tensors are idle beside an op that leaves room for few of them,
// the others are gone as a whole: z, per large absence, is the part of the iterations in which that
// is so; z <= x. With those whose any m + 1 exceed what the op leaves of the limit, all but m are
// gone: where m is 0 from its start to its end, and else, as they may take turns while it runs, at
// its start and at its end, with z's of their own. What is gone and is not made again (w >= z - r)
// was copied out in front since it was made, and is copied in behind before it is used: sums of w's
// bytes are at most what O and I grow by in the shortest stretch that has all of these copies. What
// is live at these moments has room with z in the place of x, too. Only where all ops are asked,
// and left out of programs that would need very many z.
//
// Note [Fluid recomputation]. With clones an absence has one more variable: the part r <= x that is
// made again instead of being copied in; I is of x - r. It needs no host copy and no link, and is
// back in memory when its absence ends. It costs compute time: of each op in its recipe
// (bound/recipes.h), as often as the most that one of the values it makes asks for: absences of one
// value do not overlap, those of different values may share a clone. That time is part of the
// stalls, during which links copy. Whether what a clone reads is there is not asked beyond what
// recipes say, nor where in the iteration it runs. What is carried over the iteration's end is not
// made again: an op that makes such a value may not run twice.
//
// Note [Host memory]. Where the host may hold only so many bytes, what has to be off the device
// while an op runs is there, on a file behind the host, or is made again: live bytes minus the
// limit are at most the host's, plus the padding of what is away, r, parts d <= x that are on the
// file at some time of their absence, and what has no copy of its own on the host (x where no y is
// needed: the file may have it). The parts d up to an absence of a value were written to the file,
// once each (v), as with y. The file's links carry each v and d, with its latency, within the
// iteration; when they do is not asked. Nothing of it where the device has a link of its own to a
// file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bound/any_algorithms.h"
#include "bound/linear_program.h"
#include "cost/machine.h"
#include "ir/access_index.h"

namespace tidepool {

struct FluidProblem {
  const Program& program;
  const AccessIndex& index;
  const Machine& machine;
  std::span<const std::int32_t> algorithms;  ///< one per op
  bool recompute = false;                    ///< ops may run again
  Bytes host_limit = 0;                      ///< of the host's memory; 0: none
  /// Per op, where `algorithms` are of with_best_algorithms: what there really is. Empty: no
  /// choice.
  std::span<const AlgorithmChoices::value_type> choices{};
};

struct FluidBound {
  bool feasible = false;      ///< false: some op needs more than the limit, or one of the below
  std::string refused;        ///< why there is no bound for such a program; usually empty
  bool stopped = false;       ///< time was up, or cancelled: `overhead` may be far from the best
  Nanos overhead{};           ///< no schedule has stalls and clones of a smaller sum, rounded down
  std::vector<double> share;  ///< per gap: the part that is away in an optimum, 0 to 1
};

/// The time limit is for all of a call.
using FluidOptions = SolveOptions;

/// The least overhead under a limit on the memory load. Above that under a smaller limit by no more
/// than what rounds both (Note [Certificate] in linear_program.h).
FluidBound fluid_bound(const FluidProblem& problem, Bytes limit, const FluidOptions& options = {});

/// Why the bounds do not hold for a program; empty where they do. The time of ops on several
/// devices does not add up.
std::string beyond_one_device(const Program& program);

/// The least load, of divisible tensors, with stalls of no more than a sum, rounded down; and the
/// shares that reach it. 0 for a program beyond one device.
struct FluidLoad {
  bool stopped = false;  ///< time was up, or cancelled: `bytes` may be far from the best
  Bytes bytes = 0;
  std::vector<double> share;
};
/// `stalls`: what counts as no overhead. Training without a budget may stall itself, for its
/// inputs.
FluidLoad fluid_least_load(const FluidProblem& problem, Nanos stalls,
                           const FluidOptions& options = {});

}  // namespace tidepool
