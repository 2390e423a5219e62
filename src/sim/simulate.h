// simulate: a plan's steady schedule on a virtual clock. Interprets the same instructions as the
// runtime and includes nothing of it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cost/machine.h"
#include "schedule/schedule.h"

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
  /// Difference of the last two iteration ends.
  Nanos iteration_time{};
};

/// What becomes of a plan that runs for ever.
struct LongRun {
  bool steady = false;          ///< from some iteration on, groups of `period` repeat exactly
  std::int64_t period = 1;      ///< in iterations
  std::int64_t after = 0;       ///< iterations before the first of those groups
  std::int64_t iterations = 0;  ///< simulated to know
  /// Mean of a group's iterations, rounded; where nothing repeats, of the last ones simulated.
  Nanos iteration_time{};
};

/// Duration of an instruction: the op's algorithm time, or the link's time for the copy.
Nanos duration_of(const Instruction& x, const Plan& plan, const Program& program,
                  const Machine& machine);

/// What a simulator asks of a steady schedule, close together.
struct TimedSchedule {
  struct Entry {
    Nanos duration{};
    StreamId stream = 0;
    std::int32_t guard = kNone;
    std::int32_t waits_end = 0;  ///< its waits are those up to here that are not of earlier entries
  };
  std::vector<Entry> entries;  ///< per instruction
  std::vector<Wait> waits;
  std::vector<char> computes;  ///< per stream

  TimedSchedule(const Program& program, const Plan& plan, const Machine& machine);
};

/// Runs the steady schedule from idle streams, one iteration after the other, and remembers the
/// last. On machines that share no buses (see sim/shared_buses.h, which the functions below call
/// for those that do).
class Simulator {
 public:
  Simulator(const Program& program, const Plan& plan, const Machine& machine)
      : Simulator(std::make_shared<const TimedSchedule>(program, plan, machine)) {}
  explicit Simulator(std::shared_ptr<const TimedSchedule> schedule);

  /// Another iteration. Bit g: ops with guard g run. A skipped op takes no time; it still waits and
  /// is waited for.
  void run(std::uint32_t guards = ~0U);

  [[nodiscard]] std::int64_t iterations() const { return iterations_; }
  /// Of the last iteration, per instruction.
  [[nodiscard]] const std::vector<Span>& spans() const { return current_; }
  /// End of the last iteration's last compute instruction.
  [[nodiscard]] Nanos end() const { return end_; }

 private:
  std::shared_ptr<const TimedSchedule> schedule_;
  std::vector<Nanos> free_at_;  ///< per stream
  std::vector<Span> current_;
  std::vector<Span> previous_;
  std::int64_t iterations_ = 0;
  Nanos end_{};
};

/// Simulates until the state of all that compute instructions wait for, seen from the end of the
/// last of them, has been there before; gives up after some hundred million instructions.
LongRun long_run(const Program& program, const Plan& plan, const Machine& machine);

/// Bit g of the result: ops with guard g run in this iteration. Empty: all run.
using Guards = std::function<std::uint32_t(std::int64_t iteration)>;

/// Runs `iterations` iterations of the steady schedule from idle streams and keeps all of them.
Simulation simulate(const Program& program, const Plan& plan, const Machine& machine,
                    int iterations, const Guards& guards = {});

}  // namespace tidepool
