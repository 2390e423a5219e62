// Schedule and Plan: the executable result, plain data. One totally ordered list of instructions
// over in-order streams; addresses are fixed; stalls are nothing but waits (DESIGN.md section 3).
#pragma once

#include <string>
#include <vector>

#include "base/stream_kind.h"
#include "ir/program.h"

namespace tidepool {

using StreamId = std::int32_t;
using PlacementId = std::int32_t;

/// Where a placement lies: a device's arena (0, 1, ...) or the host arena.
using Space = std::int32_t;
inline constexpr Space kHostSpace = -1;

/// An in-order queue of instructions.
struct Stream {
  std::int32_t device = 0;
  StreamKind kind = StreamKind::compute;
};

/// One instance of a tensor at one address range: [offset, offset + bytes) of a space's arena.
struct Placement {
  TensorId tensor = kNone;
  Space space = 0;
  Bytes offset = 0;
  Bytes bytes = 0;
};

/// The instruction starts only after instruction `index` of `stream` has completed: the one of
/// the same iteration (0; it stands earlier in the list) or of the previous one (-1). In the first
/// iteration after entry, -1 is satisfied: entry, steady state and exit never overlap.
struct Wait {
  StreamId stream = 0;
  std::int32_t index = 0;
  std::int32_t iteration = 0;
};

enum class InstructionKind : std::uint8_t {
  op,     ///< run a program op, on the device or (host ops) on the host
  copy,   ///< placement `from` to placement `to`
  load,   ///< host: write a persistent tensor's starting value to host placement `to`
  store,  ///< host: hand a persistent tensor's final value in host placement `from` to its owner
};

struct Instruction {
  InstructionKind kind = InstructionKind::op;
  StreamId stream = 0;
  std::vector<Wait> waits;     ///< at most one per other stream
  std::int32_t guard = kNone;  ///< the op's: skipped in iterations whose guard bit is off

  // op
  OpId op = kNone;
  std::int32_t algorithm = 0;
  std::vector<PlacementId> operands;  ///< one per access of the op, in its order
  Bytes workspace_offset = 0;
  Bytes workspace_bytes = 0;

  // copy, load, store
  PlacementId from = kNone;
  PlacementId to = kNone;
  Bytes bytes = 0;
};

struct Schedule {
  std::vector<Instruction> instructions;  ///< in issue order
};

/// Runs as entry once, steady once an iteration, exit once; the device is idle in between entry,
/// steady state and exit, but transfers may be in flight from one steady iteration to the next.
struct Plan {
  std::string program;  ///< name of the program it was made for
  std::string planner;
  Bytes device_bytes = 0;  ///< size of the device arena: the footprint
  Bytes host_bytes = 0;    ///< size of the host arena
  Bytes alignment = 0;
  std::vector<Stream> streams;
  std::vector<Placement> placements;
  /// Where each persistent tensor's value lies between iterations, one per persistent tensor.
  std::vector<PlacementId> boundary;
  Schedule entry;
  Schedule steady;
  Schedule exit;
};

}  // namespace tidepool
