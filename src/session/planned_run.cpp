#include "session/planned_run.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "base/at.h"
#include "base/invariant.h"

namespace tidepool {
namespace {

constexpr std::size_t kNotRun = static_cast<std::size_t>(-1);

/// What lies where while a schedule is walked: values by their bytes, per space.
class Values {
 public:
  explicit Values(const Plan& plan) : plan_(plan), of_space_(plan.arenas.size()) {}

  /// The tensor's only value is there from now on.
  void make(PlacementId id) {
    forget(plan_.placements[at(id)].tensor);
    add(id);
  }
  /// It is there too.
  void add(PlacementId id) {
    const Placement& p = plan_.placements[at(id)];
    auto& ranges = of_space_[at(p.space)];
    auto it = ranges.lower_bound(p.offset);
    if (it != ranges.begin() && std::prev(it)->second.end > p.offset) --it;
    while (it != ranges.end() && it->first < p.offset + p.bytes) it = ranges.erase(it);
    ranges[p.offset] = {p.offset + p.bytes, p.tensor};
  }
  /// The tensor, and its offset in the space.
  template <class Body>
  void each(SpaceId space, const Body& body) const {
    for (const auto& [offset, range] : of_space_[at(space)]) body(range.tensor, offset);
  }

 private:
  struct Range {
    Bytes end = 0;
    TensorId tensor = kNone;
  };
  void forget(TensorId tensor) {
    for (auto& ranges : of_space_) {
      std::erase_if(ranges, [&](const auto& range) { return range.second.tensor == tensor; });
    }
  }

  const Plan& plan_;
  std::vector<std::map<Bytes, Range>> of_space_;
};

}  // namespace

PlannedRun::PlannedRun(const Pattern& pattern, const Plan& plan, Device& device,
                       std::span<const StreamId> copy_streams, PlannedOps& ops)
    : pattern_(pattern),
      plan_(plan),
      device_(device),
      copy_streams_(copy_streams.begin(), copy_streams.end()),
      ops_(ops),
      prepared_(plan.steady.instructions.size()),
      first_run_(pattern.program.ops.size(), kNotRun),
      queues_(plan.streams.size()),
      issued_(prepared_.size(), 0) {
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    const Instruction& x = instruction(i);
    if (x.kind == InstructionKind::op) {
      if (first_run_[at(x.op)] == kNotRun) first_run_[at(x.op)] = i;
      for (const PlacementId id : x.operands) {
        prepared_[i].pointers.push_back(device_.arena(0) + plan_.placements[at(id)].offset);
      }
    } else {
      queues_[at(x.stream)].copies.push_back(i);
    }
    for (const Wait& wait : x.waits) {
      auto& events = prepared_[at(wait.index)].events;
      if (is_op(at(wait.index)) || events[0] != kNone) continue;
      const StreamId stream = device_stream(instruction(at(wait.index)).stream);
      events = {device_.create_event(stream), device_.create_event(stream)};
    }
  }
}

StreamId PlannedRun::device_stream(StreamId stream) const {
  // Instructions wait for earlier ones alone: streams may share one.
  return copy_streams_[at(stream) % copy_streams_.size()];
}

Location PlannedRun::location(PlacementId id) const {
  const Placement& p = plan_.placements[at(id)];
  return {p.space, p.offset + (p.space == 0 ? 0 : away_base_)};
}

std::vector<Location> PlannedRun::boundary(TensorId tensor) const {
  std::vector<Location> places;
  for (const PlacementId id : plan_.boundary) {
    if (plan_.placements[at(id)].tensor == tensor) places.push_back(location(id));
  }
  return places;
}

void PlannedRun::start(Bytes away_base) {
  started_ = true;
  away_base_ = away_base;
  next_ = 0;
  iteration_ = 0;
  forget_issued();
}

void PlannedRun::forget_issued() {
  for (CopyQueue& queue : queues_) queue.next = 0;
  std::ranges::fill(issued_, 0);
}

Device::EventId PlannedRun::event_of(const Wait& wait) const {
  if (is_op(at(wait.index))) return kNone;  // it has run: it came before
  if (wait.iteration != 0 && iteration_ == 0) return kNone;
  const std::int64_t of = iteration_ + wait.iteration;
  return prepared_[at(wait.index)].events[static_cast<std::size_t>(of & 1)];
}

void PlannedRun::issue_copy(std::size_t index) {
  const Instruction& x = instruction(index);
  const StreamId stream = device_stream(x.stream);
  for (const Wait& wait : x.waits) {
    if (const Device::EventId event = event_of(wait); event != kNone) device_.wait(stream, event);
  }
  const Placement& from = plan_.placements[at(x.from)];
  device_.name_copy(pattern_.program.tensors[at(from.tensor)].name.c_str());
  device_.copy(stream, location(x.to), location(x.from), x.bytes);
  copied_ += x.bytes;
  const Device::EventId event = prepared_[index].events[static_cast<std::size_t>(iteration_ & 1)];
  if (event != kNone) device_.record(event, stream);
}

/// What an op waits for.
void PlannedRun::wait_for(std::size_t index) {
  for (const Wait& wait : instruction(index).waits) {
    const Device::EventId event = event_of(wait);
    if (event == kNone) continue;
    const auto start = std::chrono::steady_clock::now();
    device_.synchronize(event);
    stalled_ += std::chrono::duration_cast<Nanos>(std::chrono::steady_clock::now() - start);
  }
}

void PlannedRun::run_again(std::size_t index) {
  wait_for(index);
  ops_.run_again(instruction(index).op, prepared_[index].pointers);
}

/// All ops that it waits for have run, and all copies are issued.
bool PlannedRun::may_issue(std::size_t index) const {
  return std::ranges::all_of(instruction(index).waits, [&](const Wait& wait) {
    if (wait.iteration != 0) return true;
    return is_op(at(wait.index)) ? at(wait.index) < next_ : issued_[at(wait.index)] != 0;
  });
}

/// Copies in front of `limit`, see Note [Issued early]; and goes on to the next op.
void PlannedRun::issue_ready(std::size_t limit) {
  for (bool more = true; more;) {
    more = false;
    for (CopyQueue& queue : queues_) {
      while (queue.next < queue.copies.size() && queue.copies[queue.next] < limit &&
             may_issue(queue.copies[queue.next])) {
        const std::size_t index = queue.copies[queue.next++];
        issue_copy(index);
        issued_[index] = 1;
        more = true;
      }
    }
  }
  while (next_ < prepared_.size() && !is_op(next_)) {
    invariant(issued_[next_] != 0, "a copy waits for nothing that stands behind it");
    ++next_;
  }
}

std::span<std::byte* const> PlannedRun::reach(OpId op, std::size_t limit) {
  issue_ready(limit);
  while (next_ != first_run_[at(op)]) {
    invariant(next_ < prepared_.size(), "ops of a plan come in the order of their program");
    run_again(next_++);
    issue_ready(limit);
  }
  wait_for(next_);
  return prepared_[next_].pointers;
}

std::span<std::byte* const> PlannedRun::reach(OpId op) { return reach(op, prepared_.size()); }

void PlannedRun::issue_ahead() { issue_ready(prepared_.size()); }

void PlannedRun::begin_iteration() {
  issue_ahead();
  while (next_ < prepared_.size()) {
    run_again(next_++);
    issue_ahead();
  }
  next_ = 0;
  ++iteration_;
  forget_issued();
  issue_ahead();
}

/// Frees may follow: what stands behind it is not issued yet.
void PlannedRun::carry(OpId op) {
  reach(op, first_run_[at(op)]);
  const Instruction& x = instruction(next_);
  const Placement& from = plan_.placements[at(x.operands[0])];
  device_.copy(copy_streams_[0], location(x.operands[1]), location(x.operands[0]), from.bytes);
  device_.synchronize();
  ran();
}

/// Frees may follow: what stands behind it is not issued yet.
std::byte* PlannedRun::pass(OpId op) {
  std::byte* const pointer = reach(op, first_run_[at(op)])[0];
  ran();
  return pointer;
}

PlannedRun::Places PlannedRun::leave() {
  device_.synchronize();
  Values values(plan_);
  for (const PlacementId id : plan_.boundary) values.add(id);
  const std::size_t begun = iteration_ == 0 ? next_ : prepared_.size();
  const auto walk = [&](std::size_t until) {
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      const Instruction& x = instruction(i);
      if (i >= until && issued_[i] == 0) continue;
      if (x.kind == InstructionKind::copy) values.add(x.to);
      if (x.kind != InstructionKind::op) continue;
      const Op& op = pattern_.program.ops[at(x.op)];
      for (std::size_t k = 0; k < op.accesses.size(); ++k) {
        if (op.accesses[k].mode != AccessMode::read) values.make(x.operands[k]);
      }
    }
  };
  // An iteration leaves the values that the next begins with, and perhaps others.
  walk(begun);
  if (iteration_ > 0) walk(next_);
  const auto tensors = pattern_.program.tensors.size();
  Places places{std::vector<std::optional<Bytes>>(tensors),
                std::vector<std::optional<Bytes>>(tensors)};
  for (SpaceId space = 0; space < static_cast<SpaceId>(plan_.arenas.size()); ++space) {
    values.each(space, [&](TensorId tensor, Bytes offset) {
      (space == 0 ? places.device : places.away)[at(tensor)] =
          space == 0 ? offset : offset + away_base_;
    });
  }
  return places;
}

}  // namespace tidepool
