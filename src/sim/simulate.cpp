#include "sim/simulate.h"

#include <algorithm>
#include <utility>

#include "base/at.h"

namespace tidepool {

Nanos duration_of(const Instruction& x, const Plan& plan, const Program& program,
                  const Machine& machine) {
  if (x.kind == InstructionKind::op) return program.ops[at(x.op)].algorithms[at(x.algorithm)].time;
  if (x.kind != InstructionKind::copy) return Nanos{0};
  const Link* link =
      machine.find_link(plan.placements[at(x.from)].space, plan.placements[at(x.to)].space);
  return link == nullptr ? Nanos{0} : link->speed.time(x.bytes);
}

Simulator::Simulator(const Program& program, const Plan& plan, const Machine& machine)
    : plan_(plan), free_at_(plan.streams.size()) {
  for (const Instruction& x : plan.steady.instructions) {
    durations_.push_back(duration_of(x, plan, program, machine));
  }
  current_.resize(durations_.size());
  previous_.resize(durations_.size());
}

void Simulator::run(std::uint32_t guards) {
  std::swap(current_, previous_);
  end_ = Nanos{0};
  const auto& list = plan_.steady.instructions;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Instruction& x = list[i];
    Nanos start = free_at_[at(x.stream)];
    for (const Wait& wait : x.waits) {
      if (wait.iteration == 0) {
        start = std::max(start, current_[at(wait.index)].end);
      } else if (iterations_ > 0) {
        start = std::max(start, previous_[at(wait.index)].end);
      }
    }
    const bool skipped = x.guard != kNone && (guards >> x.guard & 1U) == 0;
    current_[i] = {start, skipped ? start : start + durations_[i]};
    free_at_[at(x.stream)] = current_[i].end;
    if (plan_.streams[at(x.stream)].kind == StreamKind::compute) {
      end_ = std::max(end_, current_[i].end);
    }
  }
  ++iterations_;
}

namespace {

/// The compute instructions and all that they wait for, of this iteration or an earlier one,
/// directly or through others. What only lags behind is not among them.
std::vector<std::size_t> behind_compute(const Plan& plan) {
  const auto& list = plan.steady.instructions;
  std::vector<std::size_t> behind;
  std::vector<char> found(list.size(), 0);
  const auto add = [&](std::size_t i) {
    if (found[i] == 0) behind.push_back(i);
    found[i] = 1;
  };
  std::vector<std::size_t> last(plan.streams.size());
  for (std::size_t i = 0; i < list.size(); ++i) last[at(list[i].stream)] = i;
  std::vector<std::size_t> before(list.size());  // on the same stream, perhaps an iteration earlier
  for (std::size_t i = 0; i < list.size(); ++i) {
    before[i] = std::exchange(last[at(list[i].stream)], i);
    if (plan.streams[at(list[i].stream)].kind == StreamKind::compute) add(i);
  }
  // NOLINTNEXTLINE(modernize-loop-convert): it grows
  for (std::size_t next = 0; next < behind.size(); ++next) {
    const std::size_t i = behind[next];
    add(before[i]);
    for (const Wait& wait : list[i].waits) add(at(wait.index));
  }
  return behind;
}

/// All that decides how compute goes on, seen from its last end.
class State {
 public:
  explicit State(const std::vector<std::size_t>& behind) : behind_(behind), ends_(behind.size()) {}
  void become(const Simulator& simulator) {
    for (std::size_t k = 0; k < behind_.size(); ++k) {
      ends_[k] = simulator.spans()[behind_[k]].end - simulator.end();
    }
  }
  [[nodiscard]] bool is(const Simulator& simulator) const {
    for (std::size_t k = 0; k < behind_.size(); ++k) {
      if (simulator.spans()[behind_[k]].end - simulator.end() != ends_[k]) return false;
    }
    return true;
  }

 private:
  const std::vector<std::size_t>& behind_;
  std::vector<Nanos> ends_;
};

}  // namespace

LongRun long_run(const Program& program, const Plan& plan, const Machine& machine) {
  constexpr std::size_t kMostInstructions = 1 << 27;
  constexpr Nanos kLongest{Nanos::rep{1} << 61};
  const std::size_t length = std::max<std::size_t>(plan.steady.instructions.size(), 1);
  const auto most =
      static_cast<std::int64_t>(std::max<std::size_t>(kMostInstructions / length, 64));
  const std::vector<std::size_t> behind = behind_compute(plan);
  // Every state is compared with the one after 1, 2, 4, 8, ... iterations, the last there was.
  Simulator simulator(program, plan, machine);
  simulator.run();
  State marked(behind);
  marked.become(simulator);
  Nanos marked_end = simulator.end();
  LongRun result;
  std::int64_t since = 0;
  while (!result.steady && simulator.iterations() < most && simulator.end() < kLongest) {
    if (since > 0 && since * 2 >= simulator.iterations()) {
      marked.become(simulator);
      marked_end = simulator.end();
      since = 0;
    }
    simulator.run();
    result.steady = marked.is(simulator);
    ++since;
  }
  result.period = std::max<std::int64_t>(since, 1);
  result.iterations = simulator.iterations();
  result.iteration_time = (simulator.end() - marked_end + Nanos{result.period / 2}) / result.period;
  if (!result.steady) return result;
  // Where the groups begin: one simulator goes a period ahead of another until the two agree.
  Simulator late(program, plan, machine);
  Simulator early(program, plan, machine);
  late.run();
  for (std::int64_t i = 0; i <= result.period; ++i) early.run();
  State state(behind);
  for (state.become(early); !state.is(late); state.become(early)) {
    early.run();
    late.run();
  }
  result.after = late.iterations();
  return result;
}

Simulation simulate(const Program& program, const Plan& plan, const Machine& machine,
                    int iterations, const Guards& guards) {
  Simulation result;
  Simulator simulator(program, plan, machine);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    simulator.run(guards ? guards(iteration) : ~0U);
    result.iterations.push_back(simulator.spans());
    result.iteration_end.push_back(simulator.end());
  }
  const std::size_t n = result.iteration_end.size();
  if (n >= 2) {
    result.iteration_time = result.iteration_end[n - 1] - result.iteration_end[n - 2];
  } else if (n == 1) {
    result.iteration_time = result.iteration_end[0];
  }
  return result;
}

}  // namespace tidepool
