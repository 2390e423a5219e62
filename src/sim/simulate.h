// simulate: a plan's steady schedule on a virtual clock. Interprets the same instructions as the
// runtime and includes nothing of it.
#pragma once

#include <functional>
#include <vector>

#include "cost/machine.h"
#include "plan/schedule.h"

namespace tidepool {

/// When one instruction of one iteration ran.
struct Span {
  Nanos start{};
  Nanos end{};
  friend bool operator==(const Span&, const Span&) = default;
};

struct Simulation {
  std::vector<std::vector<Span>>
      iterations;  ///< [iteration][instruction]; time 0: all streams idle
  /// End of each iteration's last compute instruction.
  std::vector<Nanos> iteration_end;
  /// Steady state: difference of the last two iteration ends.
  Nanos iteration_time{};
  Bytes copied_out = 0;  ///< bytes to the host in one iteration
  Bytes copied_in = 0;   ///< bytes to the device in one iteration
};

/// Duration of an instruction: the op's algorithm time, or the link's time for the copy.
Nanos duration_of(const Instruction& instruction, const Plan& plan, const Program& program,
                  const Machine& machine);

/// Bit g of the result: ops with guard g run in this iteration. Empty: all run.
using Guards = std::function<std::uint32_t(std::int64_t iteration)>;

/// Runs `iterations` iterations of the steady schedule from idle streams. A skipped op takes no
/// time; it still waits and is waited for.
Simulation simulate(const Program& program, const Plan& plan, const Machine& machine,
                    int iterations, const Guards& guards = {});

}  // namespace tidepool
