#include "sim/simulate.h"

#include <algorithm>
#include <utility>

#include "base/at.h"
#include "sim/shared_buses.h"

namespace tidepool {

Nanos duration_of(const Instruction& x, const Plan& plan, const Program& program,
                  const Machine& machine) {
  if (x.kind == InstructionKind::op) return program.ops[at(x.op)].algorithms[at(x.algorithm)].time;
  if (x.kind != InstructionKind::copy) return Nanos{0};
  const Link* link =
      machine.find_link(plan.placements[at(x.from)].space, plan.placements[at(x.to)].space);
  return link == nullptr ? Nanos{0} : link->speed.time(x.bytes);
}

TimedSchedule::TimedSchedule(const Program& program, const Plan& plan, const Machine& machine) {
  const auto& list = plan.steady.instructions;
  entries.reserve(list.size());
  for (const Instruction& x : list) {
    waits.insert(waits.end(), x.waits.begin(), x.waits.end());
    entries.push_back({duration_of(x, plan, program, machine), x.stream, x.guard,
                       static_cast<std::int32_t>(waits.size())});
  }
  for (const Stream& stream : plan.streams) {
    computes.push_back(stream.kind == StreamKind::compute ? 1 : 0);
  }
}

Simulator::Simulator(std::shared_ptr<const TimedSchedule> schedule)
    : schedule_(std::move(schedule)),
      free_at_(schedule_->computes.size()),
      current_(schedule_->entries.size()),
      previous_(schedule_->entries.size()) {}

void Simulator::run(std::uint32_t guards) {
  std::swap(current_, previous_);
  end_ = Nanos{0};
  auto wait = schedule_->waits.begin();
  for (std::size_t i = 0; i < schedule_->entries.size(); ++i) {
    const TimedSchedule::Entry& x = schedule_->entries[i];
    Nanos start = free_at_[at(x.stream)];
    for (const auto end = schedule_->waits.begin() + x.waits_end; wait != end; ++wait) {
      if (wait->iteration == 0) {
        start = std::max(start, current_[at(wait->index)].end);
      } else if (iterations_ > 0) {
        start = std::max(start, previous_[at(wait->index)].end);
      }
    }
    const bool skipped = x.guard != kNone && (guards >> x.guard & 1U) == 0;
    current_[i] = {start, skipped ? start : start + x.duration};
    free_at_[at(x.stream)] = current_[i].end;
    if (schedule_->computes[at(x.stream)] != 0) end_ = std::max(end_, current_[i].end);
  }
  ++iterations_;
}

namespace {

/// The compute instructions and all that they wait for, of this iteration or an earlier one,
/// directly or through others, in their order. What only lags behind is not among them.
std::vector<std::int32_t> behind_compute(const TimedSchedule& schedule) {
  const auto n = static_cast<std::int32_t>(schedule.entries.size());
  std::vector<std::int32_t> behind;
  std::vector<char> found(at(n), 0);
  const auto add = [&](std::int32_t i) {
    if (found[at(i)] == 0) behind.push_back(i);
    found[at(i)] = 1;
  };
  const auto stream = [&](std::int32_t i) { return at(schedule.entries[at(i)].stream); };
  std::vector<std::int32_t> last(schedule.computes.size());
  for (std::int32_t i = 0; i < n; ++i) last[stream(i)] = i;
  std::vector<std::int32_t> before(at(n));  // on the same stream, perhaps an iteration earlier
  for (std::int32_t i = 0; i < n; ++i) {
    before[at(i)] = std::exchange(last[stream(i)], i);
    if (schedule.computes[stream(i)] != 0) add(i);
  }
  // NOLINTNEXTLINE(modernize-loop-convert): it grows
  for (std::size_t next = 0; next < behind.size(); ++next) {
    const std::int32_t i = behind[next];
    add(before[at(i)]);
    const std::int32_t begin = i == 0 ? 0 : schedule.entries[at(i) - 1].waits_end;
    for (std::int32_t w = begin; w < schedule.entries[at(i)].waits_end; ++w) {
      add(schedule.waits[at(w)].index);
    }
  }
  behind.clear();
  for (std::int32_t i = 0; i < n; ++i) {
    if (found[at(i)] != 0) behind.push_back(i);
  }
  return behind;
}

/// All that decides how compute goes on, seen from its last end.
class State {
 public:
  explicit State(const std::vector<std::int32_t>& behind) : behind_(behind), ends_(behind.size()) {}
  void become(const Simulator& simulator) {
    for (std::size_t k = 0; k < behind_.size(); ++k) {
      ends_[k] = simulator.spans()[at(behind_[k])].end - simulator.end();
    }
  }
  [[nodiscard]] bool is(const Simulator& simulator) const {
    for (std::size_t k = 0; k < behind_.size(); ++k) {
      if (simulator.spans()[at(behind_[k])].end - simulator.end() != ends_[k]) return false;
    }
    return true;
  }

 private:
  const std::vector<std::int32_t>& behind_;
  std::vector<Nanos> ends_;
};

}  // namespace

LongRun long_run(const Program& program, const Plan& plan, const Machine& machine) {
  if (machine.shares_buses()) return long_run_on_buses(program, plan, machine);
  constexpr std::size_t kMostInstructions = 1 << 27;
  constexpr Nanos kLongest{Nanos::rep{1} << 61};
  const std::size_t length = std::max<std::size_t>(plan.steady.instructions.size(), 1);
  const auto most =
      static_cast<std::int64_t>(std::max<std::size_t>(kMostInstructions / length, 64));
  const auto schedule = std::make_shared<const TimedSchedule>(program, plan, machine);
  const std::vector<std::int32_t> behind = behind_compute(*schedule);
  // Every state is compared with the one after 1, 2, 4, 8, ... iterations, the last there was.
  Simulator simulator(schedule);
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
  Simulator late(schedule);
  Simulator early(schedule);
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
  if (machine.shares_buses()) {
    return simulate_on_buses(program, plan, machine, iterations, guards);
  }
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
