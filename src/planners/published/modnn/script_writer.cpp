#include "planners/published/modnn/script_writer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/at.h"
#include "lower/away_spaces.h"
#include "lower/budget.h"

namespace tidepool::modnn {
namespace {

/// One stay of a value away from the device.
struct AwayStay {
  TensorId tensor = kNone;
  bool always = false;
  std::size_t begin = 0;  ///< items, both of them too
  std::size_t end = 0;
};

/// Who is away when, from the list of items.
class AwayStays {
 public:
  AwayStays(const Program& program, const DataSchedule& schedule)
      : program_(program),
        current_(program.tensors.size(), kNone),
        at_item_(schedule.items.size()) {
    for (TensorId t = 0; t < std::ssize(program.tensors); ++t) {
      const Tensor& tensor = program.tensors[at(t)];
      const bool between = tensor.persistent && schedule.stays_at[at(t)] < 0;
      if (between || (tensor.pinned && schedule.stays_at[at(t)] < 0)) begin(t, 0, true);
    }
    std::map<OpId, std::vector<TensorId>> released;
    for (TensorId t = 0; t < std::ssize(program.tensors); ++t) {
      const OpId op = program.tensors[at(t)].released_at;
      if (op != kNone) released[op].push_back(t);
    }
    for (std::size_t i = 0; i < schedule.items.size(); ++i) {
      add(schedule.items[i], i);
      const auto found = released.find(schedule.items[i].op);
      if (found == released.end()) continue;
      for (const TensorId t : found->second) {
        if (current_[at(t)] != kNone) stays_[at(current_[at(t)])].end = i;
      }
    }
  }

  [[nodiscard]] const std::vector<AwayStay>& stays() const { return stays_; }
  /// Of an item: a copy's, or one per access of a host op.
  [[nodiscard]] const std::vector<std::int32_t>& at_item(std::size_t i) const {
    return at_item_[i];
  }
  /// Of a tensor that lives there between iterations.
  [[nodiscard]] std::int32_t always(TensorId t) const { return current_[at(t)]; }

 private:
  void begin(TensorId t, std::size_t item, bool always) {
    if (current_[at(t)] != kNone && stays_[at(current_[at(t)])].always) return;
    current_[at(t)] = static_cast<std::int32_t>(stays_.size());
    stays_.push_back({t, always, item, item});
  }

  void add(const StagedItem& item, std::size_t i) {
    const auto use = [&](TensorId t, bool brings) {
      if (brings) begin(t, i, false);
      stays_[at(current_[at(t)])].end = i;
      at_item_[i].push_back(current_[at(t)]);
    };
    if (item.kind == InstructionKind::copy) {
      use(item.tensor, item.out);
      return;
    }
    const Op& op = program_.ops[at(item.op)];
    if (op.place != OpPlace::host) return;
    for (const Access& a : op.accesses) use(a.tensor, a.mode == AccessMode::write);
  }

  const Program& program_;
  std::vector<AwayStay> stays_;
  std::vector<std::int32_t> current_;  ///< per tensor
  std::vector<std::vector<std::int32_t>> at_item_;
};

class ScriptWriter {
 public:
  ScriptWriter(const Program& program, const Machine& machine, const DataSchedule& schedule,
               bool one_data_stream)
      : program_(program),
        machine_(machine),
        schedule_(schedule),
        one_data_stream_(one_data_stream),
        streams_(StreamTable::of(machine)),
        spaces_(away_spaces(program, machine)),
        stays_(program, schedule) {}

  Script write() {
    script_.streams = streams_.streams;
    for (const MemorySpace& space : machine_.spaces) {
      script_.arenas.push_back({space.kind, 0, space.alignment});
    }
    place_away();
    for (TensorId t = 0; t < std::ssize(program_.tensors); ++t) {
      if (!program_.tensors[at(t)].persistent) continue;
      const Bytes stays_at = schedule_.stays_at[at(t)];
      script_.boundary.push_back(stays_at >= 0 ? on_device(t, stays_at)
                                               : away_placement_[at(stays_.always(t))]);
    }
    script_.items.reserve(schedule_.items.size());
    for (std::size_t i = 0; i < schedule_.items.size(); ++i) {
      script_.items.push_back(item(schedule_.items[i], i));
    }
    return std::move(script_);
  }

 private:
  void place_away() {
    const auto& stays = stays_.stays();
    std::vector<MemoryManager> memory;
    for (const Arena& arena : script_.arenas) {
      memory.emplace_back(kNoDeviceLimit / arena.alignment * arena.alignment);
    }
    away_placement_.resize(stays.size());
    std::vector<std::vector<std::int32_t>> begin(schedule_.items.size());
    std::vector<std::vector<std::pair<SpaceId, SegmentId>>> end(schedule_.items.size());
    const auto place = [&](std::int32_t stay) {
      const AwayStay& s = stays[at(stay)];
      const Bytes bytes = program_.tensors[at(s.tensor)].bytes;
      const SpaceId space = spaces_[at(s.tensor)];
      MemoryManager& there = memory[at(space)];
      const auto segment =
          there.allocate(align_up(bytes, script_.arenas[at(space)].alignment), stay);
      away_placement_[at(stay)] = placement(s.tensor, space, there.segment(*segment).offset);
      if (!s.always) end[s.end].emplace_back(space, *segment);
    };
    for (std::int32_t s = 0; s < std::ssize(stays); ++s) {
      if (!stays[at(s)].always) begin[stays[at(s)].begin].push_back(s);
      if (stays[at(s)].always) place(s);
    }
    for (std::size_t i = 0; i < schedule_.items.size(); ++i) {
      for (const std::int32_t s : begin[i]) place(s);
      for (const auto& [space, segment] : end[i]) memory[at(space)].release(segment, Nanos{0});
    }
  }

  PlacementId placement(TensorId t, SpaceId space, Bytes offset) {
    const Bytes bytes = program_.tensors[at(t)].bytes;
    Arena& arena = script_.arenas[at(space)];
    // Whole blocks: copies with a file move them.
    arena.bytes = std::max(arena.bytes, offset + align_up(bytes, arena.alignment));
    script_.placements.push_back({t, space, offset, bytes});
    return static_cast<PlacementId>(script_.placements.size()) - 1;
  }

  PlacementId on_device(TensorId t, Bytes offset) {
    const auto [known, added] = on_device_.try_emplace({t, offset}, kNone);
    if (added) known->second = placement(t, 0, offset);
    return known->second;
  }

  ScriptItem item(const StagedItem& from, std::size_t i) {
    ScriptItem to;
    to.kind = from.kind;
    if (from.kind == InstructionKind::copy) {
      const StreamId both = streams_.out;
      const PlacementId away = away_placement_[at(stays_.at_item(i).front())];
      const PlacementId device = on_device(from.tensor, from.offset);
      to.stream = from.out || one_data_stream_ ? both : streams_.in;
      to.from = from.out ? device : away;
      to.to = from.out ? away : device;
      return to;
    }
    const Op& op = program_.ops[at(from.op)];
    to.op = from.op;
    to.algorithm = schedule_.algorithms[at(from.op)];
    if (op.place == OpPlace::host) {
      to.stream = streams_.host;
      for (const std::int32_t stay : stays_.at_item(i))
        to.operands.push_back(away_placement_[at(stay)]);
      return to;
    }
    to.stream = streams_.compute;
    for (std::size_t k = 0; k < op.accesses.size(); ++k) {
      to.operands.push_back(on_device(op.accesses[k].tensor, from.offsets[k]));
    }
    to.workspace_offset = from.workspace_offset;
    Bytes& arena = script_.arenas[0].bytes;
    arena = std::max(arena, from.workspace_offset + op.algorithms[at(to.algorithm)].workspace);
    return to;
  }

  const Program& program_;
  const Machine& machine_;
  const DataSchedule& schedule_;
  bool one_data_stream_;
  StreamTable streams_;
  std::vector<SpaceId> spaces_;  ///< per tensor: where it is when it is away
  AwayStays stays_;
  Script script_;
  std::vector<PlacementId> away_placement_;  ///< per stay
  std::map<std::pair<TensorId, Bytes>, PlacementId> on_device_;
};

}  // namespace

Script write_script(const Program& program, const Machine& machine, const DataSchedule& schedule,
                    bool one_data_stream) {
  return ScriptWriter(program, machine, schedule, one_data_stream).write();
}

}  // namespace tidepool::modnn
