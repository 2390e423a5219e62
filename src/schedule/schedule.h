// Schedule and Plan: the executable result, plain data. One totally ordered list of instructions
// over in-order streams; addresses are fixed; stalls are nothing but waits (DESIGN.md section 3).
#pragma once

#include <string>
#include <vector>

#include "base/id.h"
#include "base/space.h"
#include "base/stream_kind.h"
#include "ir/program.h"

namespace tidepool {

using PlacementId = Id<struct PlacementTag>;

/// One contiguous range of bytes of a space; a placement is a part of it.
struct Arena {
  SpaceKind kind = SpaceKind::device;
  Bytes bytes = 0;
  Bytes alignment = 0;  ///< every placement starts at a multiple of it
};

/// An in-order queue of instructions.
struct Stream {
  std::int32_t device = 0;  ///< compute: whose; copy: whose most of it are; 0 for others
  StreamKind kind = StreamKind::compute;
};

/// One instance of a tensor at one address range: [offset, offset + bytes) of a space's arena.
struct Placement {
  TensorId tensor = kNone;
  SpaceId space = 0;
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
  Bytes workspace_offset = 0;         ///< in the arena of the op's device
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
  /// An arena for each space, by SpaceId: those of devices, the host's, those of files.
  std::vector<Arena> arenas{{SpaceKind::device, 0, 0}, {SpaceKind::host, 0, 0}};
  std::vector<Stream> streams;
  std::vector<Placement> placements;
  /// Where each persistent tensor's value lies between iterations: one place per persistent tensor,
  /// or several, such as one on every device.
  std::vector<PlacementId> boundary;
  Schedule entry;
  Schedule steady;
  Schedule exit;

  /// The space of host memory.
  [[nodiscard]] SpaceId host() const;
  [[nodiscard]] SpaceKind kind_of(PlacementId id) const {
    const SpaceId space = placements[static_cast<std::size_t>(id)].space;
    return arenas[static_cast<std::size_t>(space)].kind;
  }
  /// Size of the first device's arena: the footprint.
  [[nodiscard]] Bytes device_bytes() const { return arenas[0].bytes; }
  [[nodiscard]] Bytes& device_bytes() { return arenas[0].bytes; }
  /// Size of the host's arena.
  [[nodiscard]] Bytes host_bytes() const { return arenas[static_cast<std::size_t>(host())].bytes; }
  [[nodiscard]] Bytes& host_bytes() { return arenas[static_cast<std::size_t>(host())].bytes; }
};

}  // namespace tidepool
