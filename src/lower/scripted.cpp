#include "lower/scripted.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "base/at.h"
#include "lower/placing/boundary_schedules.h"

namespace tidepool {
namespace {

/// What is wrong with a script; empty when nothing is.
class ScriptShape {
 public:
  ScriptShape(const Program& program, const Script& script) : program_(program), script_(script) {}

  [[nodiscard]] std::string fault() const {
    if (std::ranges::find(script_.arenas, SpaceKind::host, &Arena::kind) == script_.arenas.end()) {
      return "there is no arena of host memory";
    }
    for (const Placement& p : script_.placements) {
      if (!known(p.tensor, program_.tensors.size()) || !known(p.space, script_.arenas.size())) {
        return fmt::format("a placement is of tensor {} in space {}", p.tensor, p.space);
      }
    }
    for (const PlacementId id : script_.boundary) {
      if (!known(id, script_.placements.size())) {
        return fmt::format("the boundary names placement {}", id);
      }
    }
    OpId last_host = kNone;
    for (std::size_t i = 0; i < script_.items.size(); ++i) {
      const ScriptItem& item = script_.items[i];
      if (std::string why = fault_of(item, i); !why.empty()) {
        return fmt::format("item {}: {}", i, why);
      }
      if (item.kind != InstructionKind::op) continue;
      if (program_.ops[at(item.op)].place != OpPlace::host) continue;
      if (item.op <= last_host) {
        return fmt::format("item {}: host op '{}' comes behind '{}'", i,
                           program_.ops[at(item.op)].name, program_.ops[at(last_host)].name);
      }
      last_host = item.op;
    }
    return {};
  }

 private:
  static bool known(std::int32_t index, std::size_t size) { return index >= 0 && at(index) < size; }

  [[nodiscard]] std::string fault_of(const ScriptItem& item, std::size_t position) const {
    if (!known(item.stream, script_.streams.size())) return fmt::format("stream {}", item.stream);
    for (const std::int32_t earlier : item.after) {
      if (!known(earlier, position)) return fmt::format("a barrier behind item {}", earlier);
    }
    for (const std::int32_t earlier : item.after_previous) {
      if (!known(earlier, script_.items.size())) {
        return fmt::format("a barrier behind item {} of the iteration before", earlier);
      }
    }
    const auto place = [&](PlacementId id) { return known(id, script_.placements.size()); };
    if (item.kind == InstructionKind::copy) {
      return place(item.from) && place(item.to) ? "" : "a copy without its two placements";
    }
    if (item.kind != InstructionKind::op) return "neither an op nor a copy";
    if (!known(item.op, program_.ops.size())) return fmt::format("op {}", item.op);
    const Op& op = program_.ops[at(item.op)];
    if (!known(item.algorithm, op.algorithms.size())) {
      return fmt::format("op '{}' has no algorithm {}", op.name, item.algorithm);
    }
    if (item.operands.size() != op.accesses.size() || !std::ranges::all_of(item.operands, place)) {
      return fmt::format("op '{}' has not one placement for each access", op.name);
    }
    return {};
  }

  const Program& program_;
  const Script& script_;
};

/// See Note [Derived waits].
class WaitFinder {
 public:
  WaitFinder(const Program& program, const Script& script, const Plan& plan)
      : program_(program),
        plan_(plan),
        script_(script),
        streams_(script.streams.size()),
        n_(static_cast<std::int32_t>(script.items.size())),
        memory_(script.arenas.size()),
        last_(streams_, kNone),
        need_(streams_, kNone),
        clocks_(2 * script.items.size() * streams_, kNone) {
    find_released();
    if (!program.single_placements) return;
    places_.resize(program.tensors.size());
    for (const PlacementId id : script.boundary) {
      if (plan_.kind_of(id) == SpaceKind::device) place_of(id).current = id;
    }
  }

  /// Per item.
  std::vector<std::vector<Wait>> find() {
    std::vector<std::vector<Wait>> waits(at(n_));
    for (event_ = 0; event_ < 2 * n_; ++event_) {
      std::ranges::fill(need_, kNone);
      find_needs();
      settle(event_ < n_ ? nullptr : &waits[at(event_ - n_)]);
    }
    return waits;
  }

 private:
  /// Bytes that are written and read as one: up to `end`.
  struct Cell {
    Bytes end = 0;
    std::int32_t writer = kNone;
    std::vector<std::int32_t> readers;  ///< since then, the latest of each stream
  };
  using Cells = std::map<Bytes, Cell>;
  /// Of a tensor that may have one at a time.
  struct Place {
    PlacementId current = kNone;
    std::vector<std::int32_t> uses;  ///< the latest of each stream
  };

  [[nodiscard]] const ScriptItem& item(std::int32_t event) const {
    return script_.items[at(event < n_ ? event : event - n_)];
  }
  [[nodiscard]] std::span<std::int32_t> clock(std::int32_t event) {
    return std::span(clocks_).subspan(at(event) * streams_, streams_);
  }
  Place& place_of(PlacementId id) { return places_[at(plan_.placements[at(id)].tensor)]; }

  /// Per item that releases tensors, where these lie (Tensor::released_at): at their last access.
  void find_released() {
    std::vector<std::pair<OpId, std::size_t>> last_access(program_.tensors.size(), {kNone, 0});
    for (OpId id = 0; id < std::ssize(program_.ops); ++id) {
      const auto& accesses = program_.ops[at(id)].accesses;
      for (std::size_t k = 0; k < accesses.size(); ++k) {
        last_access[at(accesses[k].tensor)] = {id, k};
      }
    }
    std::vector<std::int32_t> first_run(program_.ops.size(), kNone);
    for (std::int32_t i = n_ - 1; i >= 0; --i) {
      if (item(i).kind == InstructionKind::op) first_run[at(item(i).op)] = i;
    }
    released_.resize(at(n_));
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
      const OpId until = program_.tensors[t].released_at;
      const auto [op, operand] = last_access[t];
      if (until == kNone || op == kNone) continue;
      const std::int32_t release = first_run[at(until)];
      const std::int32_t access = first_run[at(op)];
      if (release == kNone || access == kNone) continue;
      released_[at(release)].push_back(item(access).operands[operand]);
    }
  }

  void find_needs() {
    const ScriptItem& x = item(event_);
    for (const std::int32_t earlier : x.after) need(event_ < n_ ? earlier : earlier + n_);
    if (event_ >= n_) {
      for (const std::int32_t earlier : x.after_previous) need(earlier);
    }
    if (x.kind == InstructionKind::copy) {
      use(x.from, AccessMode::read);
      use(x.to, AccessMode::write);
      return;
    }
    const Op& op = program_.ops[at(x.op)];
    if (op.place == OpPlace::host) {
      need(last_host_);
      last_host_ = event_;
    }
    for (std::size_t k = 0; k < x.operands.size(); ++k) use(x.operands[k], op.accesses[k].mode);
    for (const PlacementId id : released_[at(event_ < n_ ? event_ : event_ - n_)]) {
      use(id, AccessMode::read);
    }
    if (const Bytes bytes = op.algorithms[at(x.algorithm)].workspace; bytes > 0) {
      touch(SpaceId{op.device}, x.workspace_offset, x.workspace_offset + bytes, true);
    }
  }

  void need(std::int32_t earlier) {
    if (earlier == kNone || earlier == event_) return;
    auto& latest = need_[at(item(earlier).stream)];
    latest = std::max(latest, earlier);
  }

  void add_latest(std::vector<std::int32_t>& events) {
    const StreamId own = item(event_).stream;
    const auto same =
        std::ranges::find_if(events, [&](std::int32_t e) { return item(e).stream == own; });
    if (same == events.end()) {
      events.push_back(event_);
    } else {
      *same = event_;
    }
  }

  void use(PlacementId id, AccessMode mode) {
    const Placement& p = plan_.placements[at(id)];
    touch(p.space, p.offset, p.offset + p.bytes, mode != AccessMode::read);
    if (!program_.single_placements || plan_.kind_of(id) != SpaceKind::device) return;
    Place& place = place_of(id);
    if (mode == AccessMode::write && place.current != kNone) {
      const Placement& before = plan_.placements[at(place.current)];
      if (before.space != p.space || before.offset != p.offset) {
        for (const std::int32_t earlier : place.uses) need(earlier);
        place.uses.clear();
      }
    }
    place.current = id;
    add_latest(place.uses);
  }

  void touch(SpaceId space, Bytes begin, Bytes end, bool writes) {
    if (begin >= end) return;
    Cells& cells = memory_[at(space)];
    cut(cells, begin);
    cut(cells, end);
    Bytes position = begin;
    auto it = cells.lower_bound(begin);
    while (position < end) {
      if (it == cells.end() || it->first > position) {  // never touched before
        const Bytes until = it == cells.end() ? end : std::min(end, it->first);
        it = cells.emplace_hint(it, position, Cell{until, kNone, {}});
      }
      Cell& cell = it->second;
      need(cell.writer);
      if (writes) {
        for (const std::int32_t reader : cell.readers) need(reader);
      } else {
        add_latest(cell.readers);
      }
      position = cell.end;
      ++it;
    }
    if (!writes) return;
    // What is written as a whole is one cell again.
    const auto first = cells.find(begin);
    cells.erase(std::next(first), it);
    first->second.end = end;
    first->second.writer = event_;
    first->second.readers.clear();
  }

  /// A cell border at `position`, where a cell has it inside.
  static void cut(Cells& cells, Bytes position) {
    auto it = cells.lower_bound(position);
    if (it == cells.begin()) return;
    --it;
    if (it->second.end <= position) return;
    Cell upper = it->second;
    it->second.end = position;
    cells.emplace_hint(std::next(it), position, std::move(upper));
  }

  /// The clock of this event, and the waits for what does not follow from others.
  void settle(std::vector<Wait>* waits) {
    const std::size_t own = at(item(event_).stream);
    const std::span<std::int32_t> known = clock(event_);
    if (last_[own] != kNone) {
      std::ranges::copy(clock(last_[own]), known.begin());
      known[own] = last_[own];
    }
    last_[own] = event_;
    need_[own] = kNone;
    for (std::size_t s = 0; s < streams_; ++s) {
      if (need_[s] <= known[s]) need_[s] = kNone;
    }
    for (std::size_t s = 0; s < streams_; ++s) {
      if (need_[s] == kNone) continue;
      const bool follows = std::ranges::any_of(
          need_, [&](std::int32_t other) { return other != kNone && clock(other)[s] >= need_[s]; });
      if (follows || waits == nullptr) continue;
      const bool now = need_[s] >= n_;
      waits->push_back({static_cast<StreamId>(s), now ? need_[s] - n_ : need_[s], now ? 0 : -1});
    }
    for (std::size_t s = 0; s < streams_; ++s) {
      if (need_[s] == kNone) continue;
      known[s] = std::max(known[s], need_[s]);
      const std::span<std::int32_t> other = clock(need_[s]);
      for (std::size_t k = 0; k < streams_; ++k) known[k] = std::max(known[k], other[k]);
    }
  }

  const Program& program_;
  const Plan& plan_;
  const Script& script_;
  std::size_t streams_;
  std::int32_t n_;
  std::vector<std::vector<PlacementId>> released_;  ///< per item
  std::vector<Cells> memory_;                       ///< per space
  std::vector<Place> places_;                       ///< per tensor, where it has one at a time
  std::int32_t last_host_ = kNone;
  std::int32_t event_ = 0;            ///< item event_ % n, of the iteration before up to n
  std::vector<std::int32_t> last_;    ///< per stream: its last event so far
  std::vector<std::int32_t> need_;    ///< per stream: what this event must wait for
  std::vector<std::int32_t> clocks_;  ///< per event and stream: the last event that is over by then
};

/// The stream of the first copy with this end on the host and the other on a device, or else the
/// first copy stream.
StreamId boundary_stream(const Script& script, const Plan& plan, PlacementId ScriptItem::*end,
                         PlacementId ScriptItem::*other) {
  for (const ScriptItem& x : script.items) {
    if (x.kind == InstructionKind::copy && plan.kind_of(x.*end) == SpaceKind::host &&
        plan.kind_of(x.*other) == SpaceKind::device) {
      return x.stream;
    }
  }
  const auto any = std::ranges::find(script.streams, StreamKind::copy, &Stream::kind);
  return any == script.streams.end() ? StreamId{kNone}
                                     : static_cast<StreamId>(any - script.streams.begin());
}

Instruction instruction(const Program& program, const Plan& plan, const ScriptItem& x) {
  Instruction out;
  out.kind = x.kind;
  out.stream = x.stream;
  if (x.kind == InstructionKind::copy) {
    out.from = x.from;
    out.to = x.to;
    out.bytes = plan.placements[at(x.from)].bytes;
    return out;
  }
  const Op& op = program.ops[at(x.op)];
  out.op = x.op;
  out.guard = op.guard;
  out.algorithm = x.algorithm;
  out.operands = x.operands;
  out.workspace_bytes = op.algorithms[at(x.algorithm)].workspace;
  out.workspace_offset = out.workspace_bytes > 0 ? x.workspace_offset : 0;
  return out;
}

}  // namespace

Result<Plan> plan_of_script(const Program& program, const Script& script) {
  const auto refuse = [](const std::string& why) {
    return fail(ErrorCode::bad_input, fmt::format("the script is wrong: {}", why));
  };
  if (const std::string why = ScriptShape(program, script).fault(); !why.empty()) {
    return refuse(why);
  }
  Plan plan;
  plan.program = program.name;
  plan.arenas = script.arenas;
  plan.streams = script.streams;
  plan.placements = script.placements;
  plan.boundary = script.boundary;
  std::vector<std::vector<Wait>> waits = WaitFinder(program, script, plan).find();
  plan.steady.instructions.reserve(script.items.size());
  for (std::size_t i = 0; i < script.items.size(); ++i) {
    plan.steady.instructions.push_back(instruction(program, plan, script.items[i]));
    plan.steady.instructions.back().waits = std::move(waits[i]);
  }
  if (script.boundary.empty()) return plan;
  BoundaryStreams streams;
  streams.in = boundary_stream(script, plan, &ScriptItem::from, &ScriptItem::to);
  streams.out = boundary_stream(script, plan, &ScriptItem::to, &ScriptItem::from);
  const auto host = std::ranges::find(script.streams, StreamKind::host, &Stream::kind);
  if (host == script.streams.end()) return refuse("persistent tensors need a stream of host ops");
  streams.host = static_cast<StreamId>(host - script.streams.begin());
  streams.to_file = script.to_file;
  streams.from_file = script.from_file;
  const bool copies = std::ranges::any_of(
      script.boundary, [&](PlacementId id) { return plan.kind_of(id) != SpaceKind::host; });
  if (copies && streams.in == kNone) return refuse("persistent tensors need a stream of copies");
  add_boundary_schedules(streams, plan);
  return plan;
}

}  // namespace tidepool
