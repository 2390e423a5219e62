#include "train/op_times.h"

#include <cmath>
#include <vector>

#include "base/at.h"

namespace tidepool {
namespace {

/// From the end of an instruction to the start of the next one on its stream, where that waits for
/// nothing: it takes so long to begin, which a profile counts as the op's.
Nanos until_next(const Plan& plan, const Observation& observation, std::size_t i) {
  const auto& list = plan.steady.instructions;
  for (std::size_t next = i + 1; next < observation.stalls.size(); ++next) {
    if (list[next].stream != list[i].stream) continue;
    const bool begins_at_once = list[next].waits.empty();
    const Nanos stall = observation.stalls[next];
    return begins_at_once && stall != Observation::kNotMeasured ? stall : Nanos{0};
  }
  return Nanos{0};
}

/// Calls `see(op, algorithm, duration)` for the first run of every device op that was measured.
template <class See>
void each_measured(const Program& program, const Plan& plan, const Observation& observation,
                   See&& see) {
  std::vector<char> seen(program.ops.size(), 0);
  for (std::size_t i = 0; i < observation.durations.size(); ++i) {
    const Instruction& x = plan.steady.instructions[i];
    if (x.kind != InstructionKind::op || seen[at(x.op)] != 0) continue;
    if (program.ops[at(x.op)].place != OpPlace::device) continue;
    if (observation.durations[i] == Observation::kNotMeasured) continue;
    seen[at(x.op)] = 1;
    see(x.op, x.algorithm, observation.durations[i] + until_next(plan, observation, i));
  }
}

void scale(Op& op, double factor) {
  for (Algorithm& a : op.algorithms) {
    a.time = Nanos{std::llround(factor * static_cast<double>(a.time.count()))};
  }
}

}  // namespace

double measured_factor(const Program& program, const Plan& plan, const Observation& observation) {
  Nanos measured{};
  Nanos said{};
  each_measured(program, plan, observation, [&](OpId op, std::int32_t algorithm, Nanos duration) {
    measured += duration;
    said += program.ops[at(op)].algorithms[at(algorithm)].time;
  });
  if (measured == Nanos{0} || said == Nanos{0}) return 1;
  return static_cast<double>(measured.count()) / static_cast<double>(said.count());
}

void take_measured_times(const Plan& plan, const Observation& observation, Program& program) {
  const double factor = measured_factor(program, plan, observation);
  std::vector<char> known(program.ops.size(), 0);
  each_measured(program, plan, observation, [&](OpId id, std::int32_t algorithm, Nanos duration) {
    Op& op = program.ops[at(id)];
    Algorithm& ran = op.algorithms[at(algorithm)];
    if (ran.time > Nanos{0}) {
      scale(op, static_cast<double>(duration.count()) / static_cast<double>(ran.time.count()));
    }
    ran.time = duration;
    known[at(id)] = 1;
  });
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] == 0 && program.ops[i].place == OpPlace::device) scale(program.ops[i], factor);
  }
}

}  // namespace tidepool
