#include "check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>

namespace tidepool {
namespace {

/// A counterexample; caught in `check`.
struct Refuted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void refute(int clause, fmt::format_string<Args...> text, Args&&... args) {
  throw Refuted(fmt::format("({}) {}", clause, fmt::format(text, std::forward<Args>(args)...)));
}

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

template <class T>
bool valid_index(std::int32_t index, const std::vector<T>& list) {
  return index >= 0 && at(index) < list.size();
}

/// Bytes an instruction touches. `tensor` is kNone for a workspace.
struct Touch {
  Space space = 0;
  Bytes begin = 0;
  Bytes end = 0;
  bool reads = false;
  bool writes = false;
  TensorId tensor = kNone;
};

class Checker {
 public:
  Checker(const Program& program, const Plan& plan, const CheckLimits& limits)
      : program_(program), plan_(plan), limits_(limits) {}

  void run() {
    check_arenas();
    check_shape("entry", plan_.entry, false);
    check_shape("steady", plan_.steady, true);
    check_shape("exit", plan_.exit, false);
    check_counts();
    check_races("entry", plan_.entry, 1);
    check_races("steady", plan_.steady, 2);
    check_races("exit", plan_.exit, 1);
    check_values();
  }

 private:
  // ---- names for counterexamples

  std::string tensor_name(TensorId t) const {
    return t == kNone ? "workspace" : fmt::format("tensor '{}'", program_.tensors[at(t)].name);
  }

  std::string describe(std::string_view part, const Schedule& schedule, std::size_t i) const {
    const Instruction& x = schedule.instructions[i];
    std::string what;
    switch (x.kind) {
      case InstructionKind::op:
        what = fmt::format("op '{}'", program_.ops[at(x.op)].name);
        break;
      case InstructionKind::copy: {
        const Placement& from = plan_.placements[at(x.from)];
        const Placement& to = plan_.placements[at(x.to)];
        what = fmt::format("copy of {} from {}{} to {}{}", tensor_name(from.tensor),
                           from.space == kHostSpace ? "host " : "device ", from.offset,
                           to.space == kHostSpace ? "host " : "device ", to.offset);
        break;
      }
      case InstructionKind::load:
        what = fmt::format("load of {}", tensor_name(plan_.placements[at(x.to)].tensor));
        break;
      case InstructionKind::store:
        what = fmt::format("store of {}", tensor_name(plan_.placements[at(x.from)].tensor));
        break;
    }
    return fmt::format("{}[{}] ({}, stream {})", part, i, what, x.stream);
  }

  // ---- clauses 0 and 1: shape

  void check_arenas() const {
    if (plan_.device_bytes > limits_.device) {
      refute(1, "the plan's device arena of {} B exceeds the budget of {} B", plan_.device_bytes,
             limits_.device);
    }
    if (limits_.host > 0 && plan_.host_bytes > limits_.host) {
      refute(1, "the plan's host arena of {} B exceeds the host budget of {} B", plan_.host_bytes,
             limits_.host);
    }
    if (plan_.alignment <= 0 || (plan_.alignment & (plan_.alignment - 1)) != 0) {
      refute(1, "alignment {} is not a power of two", plan_.alignment);
    }
    if (plan_.alignment % limits_.alignment != 0) {
      refute(1, "the plan's addresses are aligned to {} B, the machine asks for {} B",
             plan_.alignment, limits_.alignment);
    }
    for (std::size_t s = 0; s < plan_.streams.size(); ++s) {
      if (plan_.streams[s].device != 0) {
        refute(1, "stream {} is of device {}; there is one device, 0", s, plan_.streams[s].device);
      }
    }
    for (std::size_t i = 0; i < plan_.placements.size(); ++i) {
      const Placement& p = plan_.placements[i];
      if (!valid_index(p.tensor, program_.tensors)) {
        refute(1, "placement {} names tensor {} of {}", i, p.tensor, program_.tensors.size());
      }
      if (p.space != kHostSpace && p.space != 0)
        refute(1, "placement {} is in space {}", i, p.space);
      if (p.bytes != program_.tensors[at(p.tensor)].bytes) {
        refute(1, "placement {} of {} has {} B, the tensor {} B", i, tensor_name(p.tensor), p.bytes,
               program_.tensors[at(p.tensor)].bytes);
      }
      check_range(p.space, p.offset, p.bytes, tensor_name(p.tensor));
    }
  }

  void check_range(Space space, Bytes offset, Bytes bytes, const std::string& what) const {
    const Bytes size = space == kHostSpace ? plan_.host_bytes : plan_.device_bytes;
    if (offset < 0 || bytes < 0 || offset > size - bytes) {
      refute(1, "{} at [{}, {} + {}) is outside the {} arena of {} B", what, offset, offset, bytes,
             space == kHostSpace ? "host" : "device", size);
    }
    if (offset % plan_.alignment != 0) {
      refute(1, "{} at {} is not aligned to {} B", what, offset, plan_.alignment);
    }
  }

  void check_shape(std::string_view part, const Schedule& schedule, bool cyclic) const {
    for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
      const Instruction& x = schedule.instructions[i];
      check_fields(part, i, x);
      check_waits(part, schedule, i, cyclic);
    }
    check_resources(part, schedule);
  }

  /// A device runs one op at a time and a direction of its link carries one copy at a time: whoever
  /// walks the plan takes two streams for two of them.
  void check_resources(std::string_view part, const Schedule& schedule) const {
    enum Resource : std::uint8_t { compute, out, in, resources };
    constexpr std::array<std::string_view, resources> kWhat{"device ops", "copies to the host",
                                                            "copies to the device"};
    std::array<StreamId, resources> used;
    used.fill(kNone);
    for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
      const Instruction& x = schedule.instructions[i];
      Resource resource = compute;
      if (x.kind == InstructionKind::copy) {
        const Space to = plan_.placements[at(x.to)].space;
        if (plan_.placements[at(x.from)].space == to) continue;
        resource = to == kHostSpace ? out : in;
      } else if (x.kind != InstructionKind::op || program_.ops[at(x.op)].place != OpPlace::device) {
        continue;
      }
      StreamId& stream = used[resource];
      if (stream != kNone && stream != x.stream) {
        refute(0, "{}[{}] is on stream {}, and earlier {} on stream {}", part, i, x.stream,
               kWhat[resource], stream);
      }
      stream = x.stream;
      const bool both = used[out] != kNone && used[in] != kNone;
      if (!limits_.duplex && both && used[out] != used[in]) {
        refute(0, "{}[{}] is on stream {}: copies take turns on this link, and need one stream",
               part, i, x.stream);
      }
    }
  }

  void check_stream(std::string_view part, std::size_t i, const Instruction& x,
                    StreamKind kind) const {
    if (plan_.streams[at(x.stream)].kind != kind) {
      refute(0, "{}[{}] is on stream {}, which is of another kind", part, i, x.stream);
    }
  }

  void check_fields(std::string_view part, std::size_t i, const Instruction& x) const {
    if (!valid_index(x.stream, plan_.streams))
      refute(0, "{}[{}] names stream {}", part, i, x.stream);
    if (x.kind == InstructionKind::op) {
      check_op(part, i, x);
      return;
    }
    if (x.guard != kNone) refute(0, "{}[{}] has a guard; only ops may be skipped", part, i);
    const bool has_from = x.kind != InstructionKind::load;
    const bool has_to = x.kind != InstructionKind::store;
    if ((has_from && !valid_index(x.from, plan_.placements)) ||
        (has_to && !valid_index(x.to, plan_.placements))) {
      refute(1, "{}[{}] names a placement that does not exist", part, i);
    }
    const Placement& p = plan_.placements[at(has_from ? x.from : x.to)];
    if (x.bytes != p.bytes) {
      refute(3, "{}[{}] moves {} of the {} B of {}", part, i, x.bytes, p.bytes,
             tensor_name(p.tensor));
    }
    if (x.kind == InstructionKind::copy) {
      check_stream(part, i, x, StreamKind::copy);
      if (plan_.placements[at(x.from)].tensor != plan_.placements[at(x.to)].tensor) {
        refute(3, "{}[{}] copies {} over {}", part, i, tensor_name(p.tensor),
               tensor_name(plan_.placements[at(x.to)].tensor));
      }
    } else {
      check_stream(part, i, x, StreamKind::host);
      if (p.space != kHostSpace) refute(1, "{}[{}] loads or stores device bytes", part, i);
    }
  }

  void check_op(std::string_view part, std::size_t i, const Instruction& x) const {
    if (!valid_index(x.op, program_.ops)) refute(1, "{}[{}] names op {}", part, i, x.op);
    const Op& op = program_.ops[at(x.op)];
    if (x.guard != op.guard) {
      refute(5, "{}[{}] is skipped by guard {}, op '{}' by guard {}", part, i, x.guard, op.name,
             op.guard);
    }
    if (!valid_index(x.algorithm, op.algorithms)) {
      refute(1, "{}[{}]: op '{}' has no algorithm {}", part, i, op.name, x.algorithm);
    }
    const bool device = op.place == OpPlace::device;
    check_stream(part, i, x, device ? StreamKind::compute : StreamKind::host);
    if (x.operands.size() != op.accesses.size()) {
      refute(3, "{}[{}]: op '{}' has {} accesses, the instruction {} operands", part, i, op.name,
             op.accesses.size(), x.operands.size());
    }
    for (std::size_t k = 0; k < x.operands.size(); ++k) {
      if (!valid_index(x.operands[k], plan_.placements)) {
        refute(1, "{}[{}] names placement {}", part, i, x.operands[k]);
      }
      const Placement& p = plan_.placements[at(x.operands[k])];
      if (p.tensor != op.accesses[k].tensor) {
        refute(3, "{}[{}]: op '{}' is given {} in place of {}", part, i, op.name,
               tensor_name(p.tensor), tensor_name(op.accesses[k].tensor));
      }
      if ((p.space == kHostSpace) == device) {
        refute(3, "{}[{}]: op '{}' is given {} in the wrong memory", part, i, op.name,
               tensor_name(p.tensor));
      }
    }
    const Bytes needed = op.algorithms[at(x.algorithm)].workspace;
    if (x.workspace_bytes < needed) {
      refute(1, "{}[{}]: op '{}' has {} B of workspace and needs {} B", part, i, op.name,
             x.workspace_bytes, needed);
    }
    if (x.workspace_bytes > 0) {
      check_range(0, x.workspace_offset, x.workspace_bytes,
                  fmt::format("workspace of op '{}'", op.name));
    }
  }

  void check_waits(std::string_view part, const Schedule& schedule, std::size_t i,
                   bool cyclic) const {
    const Instruction& x = schedule.instructions[i];
    std::vector<char> seen(plan_.streams.size(), 0);
    for (const Wait& w : x.waits) {
      if (!valid_index(w.stream, plan_.streams) || !valid_index(w.index, schedule.instructions)) {
        refute(0, "{}[{}] waits for instruction {} of stream {}", part, i, w.index, w.stream);
      }
      if (w.stream == x.stream || seen[at(w.stream)]) {
        refute(0, "{}[{}] waits twice for stream {}, or for its own", part, i, w.stream);
      }
      seen[at(w.stream)] = 1;
      if (schedule.instructions[at(w.index)].stream != w.stream) {
        refute(0, "{}[{}] waits for instruction {}, which is not on stream {}", part, i, w.index,
               w.stream);
      }
      const bool backwards = w.iteration == 0 ? at(w.index) < i : (w.iteration == -1 && cyclic);
      if (!backwards) {
        refute(0, "{}[{}] waits for instruction {} of iteration {}, which is not issued before it",
               part, i, w.index, w.iteration);
      }
    }
  }

  // ---- what an instruction touches

  Touch touch(PlacementId id, bool reads, bool writes) const {
    const Placement& p = plan_.placements[at(id)];
    return {p.space, p.offset, p.offset + p.bytes, reads, writes, p.tensor};
  }

  std::vector<Touch> touches(const Instruction& x) const {
    std::vector<Touch> out;
    if (x.kind == InstructionKind::op) {
      const Op& op = program_.ops[at(x.op)];
      for (std::size_t k = 0; k < x.operands.size(); ++k) {
        const AccessMode mode = op.accesses[k].mode;
        out.push_back(touch(x.operands[k], mode != AccessMode::write, mode != AccessMode::read));
      }
      if (x.workspace_bytes > 0) {
        out.push_back(
            {0, x.workspace_offset, x.workspace_offset + x.workspace_bytes, false, true, kNone});
      }
    } else {
      if (x.kind != InstructionKind::load) out.push_back(touch(x.from, true, false));
      if (x.kind != InstructionKind::store) out.push_back(touch(x.to, false, true));
    }
    return out;
  }

  // ---- clause 2: races

  using Clock = std::vector<std::int64_t>;  // per stream: events known to be over

  struct Event {
    std::int64_t index = -1;  // position in the unrolled list
    StreamId stream = 0;
    std::int64_t sequence = 0;  // position on its stream, from 1
  };

  struct Cell {
    Bytes end = 0;
    Event writer;
    std::vector<Event> readers;  // since the last write; the latest per stream
  };

  using Cells = std::map<Bytes, Cell>;

  /// Makes cell borders at `begin` and `end`, and cells for bytes never touched.
  static void cut(Cells& cells, Bytes begin, Bytes end) {
    const auto split = [&](Bytes position) {
      auto it = cells.upper_bound(position);
      if (it == cells.begin()) return;
      --it;
      if (it->first == position || it->second.end <= position) return;
      Cell upper = it->second;
      it->second.end = position;
      cells.emplace(position, std::move(upper));
    };
    split(begin);
    split(end);
    Bytes position = begin;
    for (auto it = cells.lower_bound(begin); position < end;) {
      if (it == cells.end() || it->first >= end) {
        cells.emplace(position, Cell{end, {}, {}});
        break;
      }
      if (it->first > position) cells.emplace(position, Cell{it->first, {}, {}});
      position = it->second.end;
      ++it;
    }
  }

  // ---- clause 5: host ops in the program's order

  /// The host ops in the order of the program, over and over, and the last one that was issued.
  struct HostOps {
    explicit HostOps(const Program& program) {
      for (std::size_t i = 0; i < program.ops.size(); ++i) {
        if (program.ops[i].place == OpPlace::host) order.push_back(static_cast<OpId>(i));
      }
    }
    std::vector<OpId> order;
    std::size_t next = 0;
    Event last;
  };

  /// Happens-before only points backwards in the list, so the list has them in order too.
  void check_host_order(std::string_view part, const Schedule& schedule, HostOps& host_ops, OpId op,
                        const Event& event, const Clock& clock) const {
    const OpId expected = host_ops.order[host_ops.next];
    const std::size_t n = schedule.instructions.size();
    const auto who = [&](const Event& e) {
      return describe(part, schedule, static_cast<std::size_t>(e.index) % n);
    };
    if (op != expected) {
      refute(5, "{} runs where host op '{}' is next in the program's order", who(event),
             program_.ops[at(expected)].name);
    }
    if (host_ops.last.index >= 0 && clock[at(host_ops.last.stream)] < host_ops.last.sequence) {
      refute(5, "{} does not wait for {}, the host op before it", who(event), who(host_ops.last));
    }
    host_ops.last = event;
    host_ops.next = (host_ops.next + 1) % host_ops.order.size();
  }

  void check_races(std::string_view part, const Schedule& schedule, int iterations) const {
    const std::size_t n = schedule.instructions.size();
    const std::size_t streams = plan_.streams.size();
    std::vector<Clock> clocks(n * static_cast<std::size_t>(iterations));
    std::vector<std::int64_t> sequence(clocks.size());
    std::vector<std::int64_t> issued(streams, 0);
    std::vector<std::int64_t> last(streams, -1);
    std::map<Space, Cells> memory;
    HostOps host_ops(program_);
    for (std::size_t e = 0; e < clocks.size(); ++e) {
      const std::size_t i = e % n;
      const Instruction& x = schedule.instructions[i];
      Clock clock(streams, 0);
      const auto learn = [&](std::size_t earlier) {
        for (std::size_t s = 0; s < streams; ++s) clock[s] = std::max(clock[s], clocks[earlier][s]);
        auto& own = clock[at(schedule.instructions[earlier % n].stream)];
        own = std::max(own, sequence[earlier]);
      };
      if (last[at(x.stream)] >= 0) learn(static_cast<std::size_t>(last[at(x.stream)]));
      for (const Wait& w : x.waits) {
        if (w.iteration == 0) {
          learn(e - i + at(w.index));
        } else if (e >= n) {
          learn(e - i - n + at(w.index));
        }
      }
      last[at(x.stream)] = static_cast<std::int64_t>(e);
      sequence[e] = ++issued[at(x.stream)];
      clocks[e] = clock;
      const Event event{static_cast<std::int64_t>(e), x.stream, sequence[e]};
      if (x.kind == InstructionKind::op && program_.ops[at(x.op)].place == OpPlace::host) {
        check_host_order(part, schedule, host_ops, x.op, event, clock);
      }
      for (const Touch& t : touches(x)) {
        check_touch(part, schedule, memory[t.space], t, event, clock);
      }
    }
  }

  void check_touch(std::string_view part, const Schedule& schedule, Cells& cells,
                   const Touch& touch, const Event& event, const Clock& clock) const {
    cut(cells, touch.begin, touch.end);
    const auto ordered = [&](const Event& earlier) {
      return earlier.index < 0 || earlier.index == event.index ||
             clock[at(earlier.stream)] >= earlier.sequence;
    };
    const std::size_t n = schedule.instructions.size();
    const auto race = [&](const Event& earlier, Bytes byte) {
      refute(
          2, "{} and {}{} both use {} byte {}, one of them writes, and nothing orders them",
          describe(part, schedule, static_cast<std::size_t>(earlier.index) % n),
          describe(part, schedule, static_cast<std::size_t>(event.index) % n),
          static_cast<std::size_t>(earlier.index) / n == static_cast<std::size_t>(event.index) / n
              ? ""
              : " of the next iteration",
          touch.space == kHostSpace ? "host" : "device", byte);
    };
    for (auto it = cells.find(touch.begin); it != cells.end() && it->first < touch.end; ++it) {
      Cell& cell = it->second;
      if (!ordered(cell.writer)) race(cell.writer, it->first);
      if (cell.writer.index == event.index && event.index >= 0) {
        refute(2, "{} uses byte {} twice and writes it",
               describe(part, schedule, static_cast<std::size_t>(event.index) % n), it->first);
      }
      if (touch.writes) {
        for (const Event& reader : cell.readers) {
          if (reader.index == event.index) {
            refute(2, "{} uses byte {} twice and writes it",
                   describe(part, schedule, static_cast<std::size_t>(event.index) % n), it->first);
          }
          if (!ordered(reader)) race(reader, it->first);
        }
        cell.writer = event;
        cell.readers.clear();
      } else {
        const auto same = std::find_if(cell.readers.begin(), cell.readers.end(),
                                       [&](const Event& r) { return r.stream == event.stream; });
        if (same != cell.readers.end()) {
          *same = event;
        } else {
          cell.readers.push_back(event);
        }
      }
    }
  }

  // ---- clause 5: counts

  void check_counts() {
    std::vector<int> runs(program_.ops.size(), 0);
    algorithm_.assign(program_.ops.size(), kNone);
    for (const Instruction& x : plan_.steady.instructions) {
      if (x.kind == InstructionKind::load || x.kind == InstructionKind::store) {
        refute(5, "the steady state loads or stores a persistent tensor");
      }
      if (x.kind != InstructionKind::op) continue;
      ++runs[at(x.op)];
      if (algorithm_[at(x.op)] != kNone && algorithm_[at(x.op)] != x.algorithm) {
        refute(3, "op '{}' runs with two algorithms", program_.ops[at(x.op)].name);
      }
      algorithm_[at(x.op)] = x.algorithm;
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const Op& op = program_.ops[i];
      if (runs[i] == 0) refute(5, "op '{}' never runs", op.name);
      const bool repeats = runs[i] == 0 || op.algorithms[at(algorithm_[i])].deterministic;
      if (runs[i] > 1 && (!op.recomputable || !repeats || op.place == OpPlace::host)) {
        refute(5, "op '{}' runs {} times an iteration and must run once", op.name, runs[i]);
      }
    }
    for (const Schedule* s : {&plan_.entry, &plan_.exit}) {
      for (const Instruction& x : s->instructions) {
        if (x.kind == InstructionKind::op)
          refute(5, "entry or exit runs op '{}'", program_.ops[at(x.op)].name);
      }
    }
  }

  // ---- clauses 3 and 4: values

  using Value = std::int64_t;

  /// The value named by a key: equal keys, equal values.
  Value value_of(const std::vector<std::int64_t>& key) {
    return values_.emplace(key, static_cast<Value>(values_.size())).first->second;
  }
  Value starting_value(TensorId t) { return value_of({-1, t}); }

  /// The values an op writes, from those it reads.
  Value written_value(OpId op, std::size_t operand, int iteration,
                      const std::vector<Value>& reads) {
    std::vector<std::int64_t> key{op, algorithm_[at(op)], static_cast<std::int64_t>(operand),
                                  program_.ops[at(op)].random ? iteration : -1};
    key.insert(key.end(), reads.begin(), reads.end());
    return value_of(key);
  }

  struct Held {
    Bytes end = 0;
    Bytes whole_begin = 0;  // the range the value was written to
    Bytes whole_end = 0;
    Value value = 0;
  };
  using Memory = std::map<Space, std::map<Bytes, Held>>;

  static void put(Memory& memory, const Touch& t, Value value) {
    auto& cells = memory[t.space];
    auto it = cells.lower_bound(t.begin);
    if (it != cells.begin()) {
      auto before = std::prev(it);
      if (before->second.end > t.begin) {
        if (before->second.end > t.end) cells.emplace(t.end, before->second);
        before->second.end = t.begin;
      }
    }
    while (it != cells.end() && it->first < t.end) {
      if (it->second.end > t.end) cells.emplace(t.end, it->second);
      it = cells.erase(it);
    }
    cells[t.begin] = {t.end, t.begin, t.end, value};
  }

  static std::optional<Value> get(const Memory& memory, const Touch& t) {
    const auto space = memory.find(t.space);
    if (space == memory.end()) return std::nullopt;
    const auto it = space->second.find(t.begin);
    if (it == space->second.end()) return std::nullopt;
    const Held& held = it->second;
    const bool whole = held.end == t.end && held.whole_begin == t.begin && held.whole_end == t.end;
    return whole ? std::optional<Value>(held.value) : std::nullopt;
  }

  void expect(const Memory& memory, const Touch& t, Value wanted, int clause,
              const std::string& who) const {
    const auto found = get(memory, t);
    if (found && *found == wanted) return;
    refute(clause, "{} needs {} at {} [{}, {}) and finds {}", who, tensor_name(t.tensor),
           t.space == kHostSpace ? "host" : "device", t.begin, t.end,
           found ? explain_value(*found) : std::string("no whole value there"));
  }

  std::string explain_value(Value value) const {
    for (const auto& [key, v] : values_) {
      if (v != value) continue;
      if (key[0] < 0) {
        return fmt::format("the starting value of '{}'",
                           program_.tensors[at(static_cast<std::int32_t>(key[1]))].name);
      }
      const Op& op = program_.ops[at(static_cast<std::int32_t>(key[0]))];
      return fmt::format(
          "what op '{}' wrote to '{}'{}", op.name,
          program_.tensors[at(op.accesses[static_cast<std::size_t>(key[2])].tensor)].name,
          " (perhaps another version or iteration)");
    }
    return "an unknown value";
  }

  void check_values() {
    const std::vector<TensorId> persistent = persistent_tensors();
    check_boundary(persistent);
    std::vector<Value> now(program_.tensors.size(), -1);
    for (const TensorId t : persistent) now[at(t)] = starting_value(t);

    Memory memory;
    run_moves("entry", plan_.entry, memory, now, nullptr);
    const auto check_state = [&](const Memory& m, const char* when) {
      for (const PlacementId id : plan_.boundary) {
        const Touch t = touch(id, true, false);
        expect(m, t, now[at(t.tensor)], 4, fmt::format("the state {}", when));
      }
    };
    check_state(memory, "after entry");

    // Induction: start from nothing but the declared state.
    Memory steady = state_only(now);
    for (int iteration = 0; iteration < 2; ++iteration) {
      run_iteration(steady, now, iteration);
      check_state(steady, "after an iteration");
    }

    Memory last = state_only(now);
    std::vector<int> stored(program_.tensors.size(), 0);
    run_moves("exit", plan_.exit, last, now, &stored);
    for (const TensorId t : persistent) {
      if (stored[at(t)] != 1) refute(4, "exit stores {} {} times", tensor_name(t), stored[at(t)]);
    }
  }

  std::vector<TensorId> persistent_tensors() const {
    std::vector<TensorId> list;
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
      if (program_.tensors[t].persistent) list.push_back(static_cast<TensorId>(t));
    }
    return list;
  }

  void check_boundary(const std::vector<TensorId>& persistent) const {
    std::vector<int> count(program_.tensors.size(), 0);
    for (const PlacementId id : plan_.boundary) {
      if (!valid_index(id, plan_.placements)) refute(4, "the boundary names placement {}", id);
      ++count[at(plan_.placements[at(id)].tensor)];
    }
    for (const TensorId t : persistent) {
      if (count[at(t)] != 1)
        refute(4, "{} lies {} times on the boundary", tensor_name(t), count[at(t)]);
    }
    if (plan_.boundary.size() != persistent.size())
      refute(4, "a tensor on the boundary is not persistent");
  }

  Memory state_only(const std::vector<Value>& now) const {
    Memory memory;
    for (const PlacementId id : plan_.boundary) {
      const Touch t = touch(id, false, true);
      put(memory, t, now[at(t.tensor)]);
    }
    return memory;
  }

  void copy_value(std::string_view part, const Schedule& schedule, std::size_t i,
                  Memory& memory) const {
    const Instruction& x = schedule.instructions[i];
    const Touch from = touch(x.from, true, false);
    const auto value = get(memory, from);
    if (!value) {
      refute(3, "{} finds no whole value at its source", describe(part, schedule, i));
    }
    put(memory, touch(x.to, false, true), *value);
  }

  /// Entry and exit: loads, stores and copies.
  void run_moves(std::string_view part, const Schedule& schedule, Memory& memory,
                 const std::vector<Value>& now, std::vector<int>* stored) {
    for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
      const Instruction& x = schedule.instructions[i];
      if (x.kind == InstructionKind::copy) {
        copy_value(part, schedule, i, memory);
      } else if (x.kind == InstructionKind::load) {
        if (stored != nullptr) refute(4, "exit loads a tensor");
        const Touch t = touch(x.to, false, true);
        put(memory, t, starting_value(t.tensor));
      } else {
        if (stored == nullptr) refute(4, "entry stores a tensor");
        const Touch t = touch(x.from, true, false);
        expect(memory, t, now[at(t.tensor)], 4, describe(part, schedule, i));
        ++(*stored)[at(t.tensor)];
      }
    }
  }

  /// Per op: the values the original program reads and writes in this iteration.
  struct Meaning {
    std::vector<Value> reads;   // per operand; -1 for a pure write
    std::vector<Value> writes;  // per operand; -1 for a pure read
  };

  std::vector<Meaning> meaning_of_iteration(std::vector<Value>& now, int iteration) {
    std::vector<Meaning> meanings;
    for (OpId id = 0; id < static_cast<OpId>(program_.ops.size()); ++id) {
      const Op& op = program_.ops[at(id)];
      Meaning m;
      std::vector<Value> inputs;
      for (const Access& a : op.accesses) {
        const bool reads = a.mode != AccessMode::write;
        m.reads.push_back(reads ? now[at(a.tensor)] : -1);
        if (reads) inputs.push_back(m.reads.back());
      }
      for (std::size_t k = 0; k < op.accesses.size(); ++k) {
        const bool writes = op.accesses[k].mode != AccessMode::read;
        m.writes.push_back(writes ? written_value(id, k, iteration, inputs) : -1);
        if (writes) now[at(op.accesses[k].tensor)] = m.writes.back();
      }
      meanings.push_back(std::move(m));
    }
    return meanings;
  }

  void run_iteration(Memory& memory, std::vector<Value>& now, int iteration) {
    const std::vector<Meaning> meanings = meaning_of_iteration(now, iteration);
    const Schedule& schedule = plan_.steady;
    for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
      const Instruction& x = schedule.instructions[i];
      if (x.kind == InstructionKind::copy) {
        copy_value("steady", schedule, i, memory);
        continue;
      }
      const Op& op = program_.ops[at(x.op)];
      const Meaning& m = meanings[at(x.op)];
      for (std::size_t k = 0; k < x.operands.size(); ++k) {
        if (m.reads[k] < 0) continue;
        expect(memory, touch(x.operands[k], true, false), m.reads[k], 3,
               describe("steady", schedule, i));
      }
      // What the op overwrites, workspace included, is gone even where it was not read.
      if (x.workspace_bytes > 0) {
        put(memory,
            {0, x.workspace_offset, x.workspace_offset + x.workspace_bytes, false, true, kNone},
            -2);
      }
      for (std::size_t k = 0; k < x.operands.size(); ++k) {
        if (op.accesses[k].mode != AccessMode::read) {
          put(memory, touch(x.operands[k], false, true), m.writes[k]);
        }
      }
    }
  }

  const Program& program_;
  const Plan& plan_;
  const CheckLimits& limits_;
  std::vector<std::int32_t> algorithm_;
  std::map<std::vector<std::int64_t>, Value> values_;
};

}  // namespace

Result<void> check(const Program& program, const Plan& plan, const CheckLimits& limits) {
  if (auto valid = validate(program); !valid) return valid;
  try {
    Checker(program, plan, limits).run();
  } catch (const Refuted& counterexample) {
    return fail(ErrorCode::check_failed,
                fmt::format("the plan is wrong: {}", counterexample.what()));
  }
  return {};
}

}  // namespace tidepool
