// Program: one training iteration as a planner sees it. Framework-neutral: sizes, order, times;
// no shapes, no kernels (DESIGN.md section 3).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/id.h"
#include "base/result.h"
#include "base/time.h"

namespace tidepool {

using TensorId = Id<struct TensorTag>;
using OpId = Id<struct OpTag>;

enum class TensorKind : std::uint8_t {
  input,
  weight,
  optimizer_state,
  activation,
  gradient,
  workspace,
};

/// Where the bytes of a persistent tensor lie while no iteration runs.
enum class Home : std::uint8_t { anywhere, device };

// Note [Home]. Whoever looks at a persistent tensor between iterations, to evaluate or to save,
// finds one whose home is the device on each device whose ops access it. So nothing is decided for
// the interval from its last access to its first one in the next iteration: it is kept, at one
// address. Between other accesses it leaves and comes back like any tensor. Its bytes count as
// taken in front of its first access and behind its last one, in the smallest budget too.

/// One storage; views share it.
struct Tensor {
  std::string name;  ///< unique in its program
  Bytes bytes = 0;
  TensorKind kind = TensorKind::activation;
  /// Its value at the end of an iteration is its value at the start of the next.
  bool persistent = false;
  /// It has one address for as long as it lives, and is never copied to another space. All its
  /// accesses are of one place.
  bool pinned = false;
  /// Not persistent: its bytes stay taken until this op, behind its last access and at the same
  /// place, has run (a framework still holds them); kNone: no longer than it is accessed.
  OpId released_at = kNone;
  /// Not `anywhere` only if it is persistent and device ops access it. See Note [Home].
  Home home = Home::anywhere;
};

enum class AccessMode : std::uint8_t {
  read,
  write,   ///< overwrites every byte; the old value is not needed
  update,  ///< reads the old value and makes a new version; any partial overwrite is one
};

struct Access {
  TensorId tensor = kNone;
  AccessMode mode = AccessMode::read;
};

/// One way to run an op. All algorithms of an op share its tensors' layouts; what one needs beyond
/// them is workspace.
struct Algorithm {
  std::string name;
  Nanos time{};         ///< measured, or from a cost model; see is_measured
  Bytes workspace = 0;  ///< device bytes live only while the op runs
  bool deterministic = true;
};

enum class OpPlace : std::uint8_t { device, host };

/// Part of an iteration an op belongs to.
enum class Phase : std::uint8_t {
  forward,
  backward,
  update,  ///< of weights and of other state
  other,   ///< inputs, results; ops of recordings that do not say
};

inline constexpr std::int32_t kMostGuards = 32;
inline constexpr std::int32_t kMostDevices = 64;

// Note [Guards]. A guard is a bit that each iteration sets anew. An op whose guard is off does not
// run: what it updates keeps its value, what it writes holds nothing. So only ops of the same guard
// may read what a guarded op wrote, and what it changes of persistent state it updates. Copies are
// never skipped: they carry nothing to nobody then.

/// One kernel call.
struct Op {
  std::string name;  ///< unique in its program
  std::string kind;  ///< kind of computation, for reports and cost models ("conv_forward")
  OpPlace place = OpPlace::device;
  std::int32_t device = 0;  ///< device ops: on which
  /// The sub-batch round it belongs to, or kNone: once an iteration (weight updates).
  std::int32_t round = 0;
  std::vector<Access> accesses;       ///< a tensor appears at most once
  std::vector<Algorithm> algorithms;  ///< at least one
  bool recomputable = true;
  /// The result also depends on (seed, iteration): dropout, and host ops that feed data.
  bool random = false;
  /// Index of the guard that may skip this op in an iteration, or kNone. See Note [Guards].
  std::int32_t guard = kNone;
  /// Index into Program::layers, or kNone. What runs for a layer forwards, backwards and at its
  /// update has the same one: some planners decide by layer.
  std::int32_t layer = kNone;
  Phase phase = Phase::other;
  double flops = 0;   ///< floating-point operations, for cost models
  Bytes traffic = 0;  ///< bytes read and written in device memory, for cost models
};

/// Ops in execution order. Inputs (data, labels, control block) are written by host ops at the
/// start; results a person sees (the loss) are read by host ops.
///
/// An iteration may split its batch into rounds of `sub_batch` samples, the last one smaller where
/// they do not divide. The rounds are written out one after the other: each has ops and tensors of
/// its own, and ops of later ones update the gradients of the first. Whatever holds for ops and
/// gaps so holds within a round, between rounds and at their end.
struct Program {
  std::string name;
  std::int64_t batch = 1;           ///< samples an iteration
  std::int64_t sub_batch = 1;       ///< samples a round; 1 <= sub_batch <= batch
  std::vector<std::string> layers;  ///< names, in the order of their first forward op; may be empty
  std::vector<Tensor> tensors;
  std::vector<Op> ops;

  /// A tensor may have at most one place on a device at a time. For runtimes whose blocks have one
  /// address. Nothing is recomputed then: that takes places beside those that are still needed.
  bool single_placements = false;

  [[nodiscard]] std::int64_t rounds() const { return (batch + sub_batch - 1) / sub_batch; }
};

// Far above anything real, and small enough that no sum of bytes or times over an iteration and its
// copies, nor over ten thousand iterations, leaves 63 bits.
inline constexpr Bytes kMostTensorBytes = Bytes{1} << 50;    ///< of a tensor, of a workspace
inline constexpr Bytes kMostAccessedBytes = Bytes{1} << 56;  ///< over all accesses of an iteration
inline constexpr Nanos kMostIterationTime{std::int64_t{1} << 46};  ///< 19.5 h: all ops and copies

/// Checks every structural promise above, the limits on bytes and times, plus: a tensor that is not
/// persistent is written before it is read; an op that updates or overwrites persistent state is
/// not recomputable; tensors that stay taken, are pinned or have a home keep to what Tensor says;
/// rounds exist and follow each other; what Note [Guards] asks; and every tensor is accessed. The
/// message names the op or tensor.
Result<void> validate(const Program& program);

/// Whether all device ops run on one device. Where they run on several, their times do not add up.
bool on_one_device(const Program& program);

/// Whether its time is known: it is above 0, or that of all algorithms of its op is 0 that are as
/// deterministic as it is. Others are no choice, for planners and bounds alike.
bool is_measured(const Algorithm& algorithm, const Op& op);

/// Of the measured deterministic ones that with the least workspace; ties go to the faster one,
/// then to the earlier one.
int least_workspace_algorithm(const Op& op);

/// Leaves no op an algorithm with a larger workspace, but its least_workspace_algorithm.
void limit_workspaces(Program& program, Bytes most);

/// The fastest deterministic algorithm of those measured; ties go to the smaller workspace, then to
/// the earlier one.
int fastest_algorithm(const Op& op);

const char* to_string(TensorKind kind);
const char* to_string(Phase phase);
const char* to_string(AccessMode mode);

}  // namespace tidepool
