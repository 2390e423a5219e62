#include "runtime/executor.h"

#include <algorithm>
#include <array>

#include "base/at.h"
#include "runtime/arena_pages.h"

namespace tidepool {
namespace {

constexpr std::uint32_t kAllGuards = ~0U;

/// One more for times: those of copies are read when the iteration behind theirs is complete.
constexpr std::int64_t kTimingSlots = Executor::kIterationsAhead + 2;
std::size_t timing_slot(std::int64_t iteration) {
  return static_cast<std::size_t>(iteration % kTimingSlots);
}

}  // namespace

/// Recorded before and after a piece of work.
struct Executor::TimedEvents {
  Device::EventId start = kNone;
  Device::EventId end = kNone;
  bool ran = false;
};

struct Executor::Prepared {
  Executor* owner = nullptr;
  const Instruction* instruction = nullptr;
  std::size_t index = 0;
  std::vector<std::byte*> pointers;
  std::byte* workspace = nullptr;
  std::vector<TouchedRange> ranges;
  Bytes highest_byte = 0;
  /// Recorded in even and odd iterations; a wait for the previous iteration takes the other one.
  /// kNone: nobody waits for this instruction.
  std::array<Device::EventId, 2> events{kNone, kNone};
  /// Of each iteration in flight. Empty: not timed so.
  std::vector<TimedEvents> timing;
};

struct Executor::PreparedSchedule {
  std::vector<Prepared> instructions;
};

DeviceConfig device_config(const Plan& plan) {
  DeviceConfig config;
  for (const Arena& arena : plan.arenas) config.arenas.push_back({arena.kind, arena.bytes});
  for (const Stream& stream : plan.streams) {
    config.streams.emplace_back(stream.kind, SpaceId{stream.device});
  }
  return config;
}

Executor::Executor(const Program& program, const Plan& plan, Device& device, OpRunner& runner)
    : Executor(program, plan, opened(device, device_config(plan)), runner) {}

Executor::Executor(const Program& program, const Plan& plan, OpenDevice device, OpRunner& runner)
    : program_(program), plan_(plan), device_(device.device), runner_(runner) {
  entry_ = std::make_unique<PreparedSchedule>(prepare(plan.entry));
  steady_ = std::make_unique<PreparedSchedule>(prepare(plan.steady));
  exit_ = std::make_unique<PreparedSchedule>(prepare(plan.exit));
  for (const Instruction& x : plan.steady.instructions) {
    if (x.guard != kNone) used_guards_ |= 1U << x.guard;
    if (plan.streams[at(x.stream)].kind != StreamKind::compute) continue;
    if (std::ranges::find(compute_streams_, x.stream) == compute_streams_.end()) {
      compute_streams_.push_back(x.stream);
    }
  }
  for (std::int64_t i = 0; i <= kIterationsAhead; ++i) {
    std::vector<Device::EventId>& ends = iteration_end_.emplace_back();
    for (const StreamId stream : compute_streams_) {
      ends.push_back(device_.create_timed_event(stream));
    }
    graph_end_.push_back(device_.create_timed_event(StreamId{0}));
  }
  timings_.assign(static_cast<std::size_t>(kTimingSlots),
                  std::vector<OpTiming>(plan.steady.instructions.size()));
}

Executor::~Executor() {
  try {
    device_.synchronize();  // nothing may still run on addresses and runners we refer to
  } catch (const DeviceError&) {
    // Already reported to whoever synchronised; the streams are idle.
  }
}

Location Executor::location(PlacementId id) const {
  const Placement& p = plan_.placements[at(id)];
  return {p.space, p.offset};
}

/// Null in a file.
std::byte* Executor::address(PlacementId id) const {
  const Placement& p = plan_.placements[at(id)];
  std::byte* const arena = device_.arena(p.space);
  return arena == nullptr ? nullptr : arena + p.offset;
}

Executor::PreparedSchedule Executor::prepare(const Schedule& schedule) {
  PreparedSchedule result;
  result.instructions.resize(schedule.instructions.size());
  for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
    const Instruction& x = schedule.instructions[i];
    Prepared& p = result.instructions[i];
    p.owner = this;
    p.instruction = &x;
    p.index = i;
    const auto touch = [&](PlacementId id, bool write) {
      const Placement& place = plan_.placements[at(id)];
      p.pointers.push_back(address(id));
      p.ranges.push_back({address(id), place.bytes, write});
      if (plan_.kind_of(id) == SpaceKind::device)
        p.highest_byte = std::max(p.highest_byte, place.offset + place.bytes);
    };
    if (x.kind == InstructionKind::op) {
      const Op& op = program_.ops[at(x.op)];
      for (std::size_t k = 0; k < x.operands.size(); ++k) {
        touch(x.operands[k], op.accesses[k].mode != AccessMode::read);
      }
      if (x.workspace_bytes > 0) {
        p.workspace = device_.arena(op.device) + x.workspace_offset;
        p.ranges.push_back({p.workspace, x.workspace_bytes, true});
        p.highest_byte = std::max(p.highest_byte, x.workspace_offset + x.workspace_bytes);
      }
    } else {
      if (x.from != kNone) touch(x.from, false);
      if (x.to != kNone) touch(x.to, true);
    }
    for (const Wait& wait : x.waits) {
      auto& events = result.instructions[at(wait.index)].events;
      const StreamId stream = schedule.instructions[at(wait.index)].stream;
      if (events[0] == kNone) {
        events = {device_.create_event(stream), device_.create_event(stream)};
      }
    }
  }
  return result;
}

void Executor::run_work(void* context, std::int64_t argument, NativeStream stream) {
  auto& p = *static_cast<Prepared*>(context);
  Executor& self = *p.owner;
  const Instruction& x = *p.instruction;
  switch (x.kind) {
    case InstructionKind::load:
      self.runner_.load(self.plan_.placements[at(x.to)].tensor, p.pointers[0]);
      return;
    case InstructionKind::store:
      self.runner_.store(self.plan_.placements[at(x.from)].tensor, p.pointers[0]);
      return;
    default:
      break;
  }
  OpCall call;
  call.op = x.op;
  call.algorithm = x.algorithm;
  call.iteration = argument;
  call.pointers = p.pointers;
  call.workspace = p.workspace;
  const Nanos start = self.device_.now();
  self.runner_.launch(call, stream);
  if (self.device_.enqueues_kernels()) return;  // these would be times of launching
  self.timings_[timing_slot(argument)][p.index] = {start, self.device_.now()};
}

void Executor::issue_instruction(Prepared& p, std::int64_t iteration) {
  const Instruction& x = *p.instruction;
  if (x.kind == InstructionKind::copy) {
    device_.name_copy(program_.tensors[at(plan_.placements[at(x.from)].tensor)].name.c_str());
    issue_timed(p, iteration,
                [&] { device_.copy(x.stream, location(x.to), location(x.from), x.bytes); });
    return;
  }
  Work work;
  work.run = &Executor::run_work;
  work.context = &p;
  work.argument = iteration;
  work.label.op = x.op;
  work.label.algorithm = x.algorithm;
  work.label.kind = plan_.streams[at(x.stream)].kind == StreamKind::host ? WorkLabel::Kind::host
                                                                         : WorkLabel::Kind::op;
  if (device_.wants_ranges()) work.label.ranges = p.ranges;
  issue_timed(p, iteration, [&] { device_.launch(x.stream, work); });
}

template <class Issue>
void Executor::issue_timed(Prepared& p, std::int64_t iteration, const Issue& issue) {
  if (!keep_timings_ || p.timing.empty() || capturing_) {
    issue();
    return;
  }
  TimedEvents& timed = p.timing[timing_slot(iteration)];
  device_.record(timed.start, p.instruction->stream);
  issue();
  device_.record(timed.end, p.instruction->stream);
  timed.ran = true;
}

void Executor::issue(PreparedSchedule& schedule, std::int64_t iteration, std::uint32_t guards,
                     bool first) {
  const auto parity = static_cast<std::size_t>(iteration & 1);
  for (Prepared& p : schedule.instructions) {
    for (const Wait& wait : p.instruction->waits) {
      if (wait.iteration != 0 && first) continue;
      const Prepared& target = schedule.instructions[at(wait.index)];
      device_.wait(p.instruction->stream, target.events[wait.iteration == 0 ? parity : 1 - parity]);
    }
    // A skipped instruction keeps its place in the order: its waits and its event stay.
    if (const std::int32_t guard = p.instruction->guard;
        guard == kNone || (guards >> guard & 1U) != 0) {
      issue_instruction(p, iteration);
    } else {
      timings_[timing_slot(iteration)][p.index] = {};
      if (!p.timing.empty()) p.timing[timing_slot(iteration)].ran = false;
    }
    if (p.events[parity] != kNone) device_.record(p.events[parity], p.instruction->stream);
    arena_peak_ = std::max(arena_peak_, p.highest_byte);
  }
}

void Executor::record_timings() {
  keep_timings_ = true;
  kept_timings_.clear();
  for (Prepared& p : steady_->instructions) {
    const bool copy = p.instruction->kind == InstructionKind::copy;
    if (!copy && !(device_.enqueues_kernels() && computes(p))) continue;
    const StreamId stream = p.instruction->stream;
    while (p.timing.size() < timings_.size()) {
      p.timing.push_back(
          {device_.create_timed_event(stream), device_.create_timed_event(stream), false});
    }
  }
}

void Executor::stop_timings() { keep_timings_ = false; }

void Executor::enter() {
  issue(*entry_, 0, kAllGuards, true);
  device_.synchronize();
  discard_between_iterations(plan_, SpaceKind::host, device_);
  populate_devices(plan_, device_);
}

RunReport Executor::run(std::int64_t iterations, const Stop& stop,
                        const std::function<void(std::int64_t, Nanos)>& on_iteration) {
  RunReport report;
  Nanos previous = device_.now();
  const std::int64_t base = next_iteration_;
  std::int64_t issued = 0;
  const auto complete_one = [&] {
    Nanos end{0};
    for (std::size_t k = 0; k < compute_streams_.size(); ++k) {
      end = std::max(end, device_.synchronize(iteration_end_[slot(report.iterations)][k]));
    }
    const Nanos took = end - previous;
    previous = end;
    report.iteration_times.push_back(took);
    if (keep_timings_) {
      keep_timings(base + report.iterations);
      if (report.iterations > 0) keep_copies(base + report.iterations - 1, 1);
    }
    if (on_iteration) on_iteration(base + report.iterations, took);
    ++report.iterations;
  };
  while (issued < iterations) {
    if (stop.requested()) {
      report.cancelled = true;
      break;
    }
    const std::int64_t iteration = base + issued;
    const std::uint32_t guards = runner_.guards(iteration);
    issue(*steady_, iteration, guards, issued == 0);
    ran_ = true;
    ran_guards_ |= guards;
    for (std::size_t k = 0; k < compute_streams_.size(); ++k) {
      device_.record(iteration_end_[slot(issued)][k], compute_streams_[k]);
    }
    ++issued;
    if (issued - report.iterations > kIterationsAhead) complete_one();
  }
  while (report.iterations < issued) complete_one();
  device_.synchronize();
  if (keep_timings_ && issued > 0) keep_copies(base + issued - 1, 0);
  next_iteration_ = base + issued;
  return report;
}

void Executor::capture(std::vector<std::uint32_t> guards) {
  device_.synchronize();
  // Destroying it may synchronise, which a capture forbids.
  if (graph_ != kNone) device_.destroy_graph(graph_);
  graph_ = kNone;
  device_.begin_capture();
  capturing_ = true;
  // Numbered from 0: the device adds the number of the launch. Kernels take theirs from the control
  // block.
  for (std::size_t i = 0; i < guards.size(); ++i) {
    issue(*steady_, static_cast<std::int64_t>(i), guards[i], i == 0);
  }
  graph_ = device_.end_capture();
  capturing_ = false;
  graph_guards_ = std::move(guards);
}

bool Executor::computes(const Prepared& p) const {
  return plan_.streams[at(p.instruction->stream)].kind == StreamKind::compute;
}

OpTiming Executor::timing_of(const Prepared& p, std::int64_t iteration) const {
  const TimedEvents& timed = p.timing[timing_slot(iteration)];
  if (!timed.ran) return {};
  return {device_.synchronize(timed.start), device_.synchronize(timed.end)};
}

void Executor::keep_timings(std::int64_t iteration) {
  std::vector<OpTiming>& kept = kept_timings_.emplace_back(plan_.steady.instructions.size());
  for (const Prepared& p : steady_->instructions) {
    if (!computes(p)) continue;  // work on other streams may still be running
    kept[p.index] =
        p.timing.empty() ? timings_[timing_slot(iteration)][p.index] : timing_of(p, iteration);
  }
}

void Executor::keep_copies(std::int64_t iteration, std::size_t before_last) {
  std::vector<OpTiming>& kept = kept_timings_[kept_timings_.size() - 1 - before_last];
  for (const Prepared& p : steady_->instructions) {
    if (p.instruction->kind == InstructionKind::copy && !p.timing.empty()) {
      kept[p.index] = timing_of(p, iteration);
    }
  }
}

void Executor::exit() {
  discard_between_iterations(plan_, SpaceKind::device, device_);
  issue(*exit_, 0, kAllGuards, true);
  device_.synchronize();
}

}  // namespace tidepool
