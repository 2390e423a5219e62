// Step: one instruction of a schedule before it has addresses, with its times in the steady state.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cost/machine.h"
#include "schedule/schedule.h"

namespace tidepool {

/// The streams that plans for the first device use: of its ops, of each direction of its link with
/// the host, and of host ops.
struct StreamTable {
  StreamId compute = 0;
  StreamId out = 1;
  StreamId in = 2;  ///< equal to `out` on machines that are not duplex
  StreamId host = 3;
  std::vector<Stream> streams;
  static StreamTable of(const Machine& machine);
};

inline constexpr int kMaxStreams = 4;

enum class StepKind : std::uint8_t { op, copy_out, copy_in };

struct StepWait {
  std::int32_t index = kNone;  ///< position in the list; kNone: no wait on that stream
  std::int32_t iteration = 0;  ///< 0 or -1
};

/// One future instruction: a call of the expansion, or one of its moves.
struct Step {
  static constexpr int kStreams = kMaxStreams;
  StepKind kind = StepKind::op;
  StreamId stream = 0;
  std::int32_t id = kNone;  ///< call, or move
  std::array<StepWait, kMaxStreams> waits;
  Nanos duration{};
  Nanos start{};  ///< in the steady state, relative to the start of the iteration's compute
  Nanos end{};
};

}  // namespace tidepool
