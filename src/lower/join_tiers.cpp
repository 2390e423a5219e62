#include "lower/join_tiers.h"

#include <algorithm>

#include "base/at.h"
#include "base/invariant.h"
#include "lower/step.h"

namespace tidepool {
namespace {

class TierJoiner {
 public:
  explicit TierJoiner(const TwoPlans& plans)
      : in_(plans),
        host_(plans.machine.host()),
        file_(plans.machine.behind_host()),
        item_of_(plans.upper.steady.instructions.size(), kNone) {}

  Script write() {
    add_arenas();
    add_streams();
    place_upper();
    place_lower();
    add_boundary();
    for (const Instruction& x : in_.lower.steady.instructions) {
      if (x.kind == InstructionKind::copy) {
        push_file_copy(x);
      } else {
        push_up_to(in_.host.instruction_of[at(x.op)], &x);
      }
    }
    push_up_to(kNone, nullptr);
    add_barriers();
    return std::move(script_);
  }

 private:
  [[nodiscard]] const Instruction& upper(std::int32_t i) const {
    return in_.upper.steady.instructions[at(i)];
  }
  [[nodiscard]] bool on_host(PlacementId upper) const {
    return in_.upper.kind_of(upper) == SpaceKind::host;
  }

  void add_arenas() {
    for (const MemorySpace& space : in_.machine.spaces) {
      script_.arenas.push_back({space.kind, 0, space.alignment});
    }
    for (std::size_t s = 0; s < in_.upper.arenas.size() && s < at(host_); ++s) {
      script_.arenas[s] = in_.upper.arenas[s];
    }
    script_.arenas[at(host_)].alignment = in_.lower.arenas[0].alignment;
    script_.arenas[at(file_)].alignment = in_.lower.arenas[1].alignment;
  }

  /// What takes turns with copies of the device is on their stream.
  void add_streams() {
    script_.streams = in_.upper.streams;
    const StreamTable table = StreamTable::of(in_.machine);
    std::vector<StreamId> of_channel(at(in_.machine.channels()), kNone);
    of_channel[at(in_.machine.find_link(0, host_)->channel)] = table.out;
    of_channel[at(in_.machine.find_link(host_, 0)->channel)] = table.in;
    const auto stream = [&](SpaceId from, SpaceId to) {
      StreamId& known = of_channel[at(in_.machine.find_link(from, to)->channel)];
      if (known == kNone) {
        known = static_cast<StreamId>(script_.streams.size());
        script_.streams.push_back({0, StreamKind::copy});
      }
      return known;
    };
    script_.to_file = stream(host_, file_);
    script_.from_file = stream(file_, host_);
  }

  PlacementId add_placement(const Placement& p) {
    script_.placements.push_back(p);
    return static_cast<PlacementId>(script_.placements.size()) - 1;
  }

  /// Those on devices stay as they are.
  void place_upper() {
    of_upper_.assign(in_.upper.placements.size(), kNone);
    for (std::size_t i = 0; i < in_.upper.placements.size(); ++i) {
      const auto id = static_cast<PlacementId>(i);
      if (!on_host(id)) of_upper_[i] = add_placement(in_.upper.placements[i]);
    }
  }

  /// Those that iterations use: entry and exit are made anew.
  void place_lower() {
    of_lower_.assign(in_.lower.placements.size(), kNone);
    const auto place = [&](PlacementId id) {
      if (id == kNone || of_lower_[at(id)] != kNone) return;
      Placement p = in_.lower.placements[at(id)];
      p.tensor = in_.host.tensor_of[at(p.tensor)];
      p.space = p.space == 0 ? host_ : file_;
      Arena& arena = script_.arenas[at(p.space)];
      const Bytes block = script_.arenas[at(host_)].alignment;
      arena.bytes = std::max(arena.bytes, p.offset + align_up(p.bytes, block));
      of_lower_[at(id)] = add_placement(p);
    };
    for (const Instruction& x : in_.lower.steady.instructions) {
      for (const PlacementId id : x.operands) place(id);
      place(x.from);
      place(x.to);
    }
    for (const PlacementId id : in_.lower.boundary) place(id);
  }

  void add_boundary() {
    for (const PlacementId id : in_.upper.boundary) {
      if (!on_host(id)) script_.boundary.push_back(of_upper_[at(id)]);
    }
    for (const PlacementId id : in_.lower.boundary) script_.boundary.push_back(of_lower_[at(id)]);
  }

  void push_file_copy(const Instruction& x) {
    ScriptItem item;
    item.kind = InstructionKind::copy;
    item.from = of_lower_[at(x.from)];
    item.to = of_lower_[at(x.to)];
    const bool down = script_.placements[at(item.to)].space == file_;
    item.stream = down ? script_.to_file : script_.from_file;
    script_.items.push_back(std::move(item));
  }

  /// The upper plan's instructions up to this one, or the rest; it finds its host bytes where the
  /// lower plan's call has them.
  void push_up_to(std::int32_t last, const Instruction* call) {
    while (next_ < in_.host.order.size()) {
      const std::int32_t i = in_.host.order[next_++];
      push_upper(i, i == last ? call : nullptr);
      if (i == last) return;
    }
    invariant(last == kNone, "the instruction that a call stands for is found");
  }

  void push_upper(std::int32_t i, const Instruction* call) {
    const Instruction& x = upper(i);
    std::size_t used = 0;
    const auto placed = [&](PlacementId id) {
      if (!on_host(id)) return of_upper_[at(id)];
      invariant(call != nullptr, "only calls use blocks of the host");
      return of_lower_[at(call->operands[used++])];
    };
    ScriptItem item;
    item.kind = x.kind;
    item.stream = x.stream;
    if (x.kind == InstructionKind::copy) {
      item.from = placed(x.from);
      item.to = placed(x.to);
    } else {
      item.op = x.op;
      item.algorithm = x.algorithm;
      item.workspace_offset = x.workspace_offset;
      for (const PlacementId id : x.operands) item.operands.push_back(placed(id));
    }
    item_of_[at(i)] = static_cast<std::int32_t>(script_.items.size());
    script_.items.push_back(std::move(item));
  }

  /// Waits of the upper plan that addresses do not give: triggers, barriers. Where its host bytes
  /// were handed on they are so no more.
  void add_barriers() {
    for (std::size_t i = 0; i < item_of_.size(); ++i) {
      const Instruction& x = upper(static_cast<std::int32_t>(i));
      ScriptItem& item = script_.items[at(item_of_[i])];
      for (const Wait& wait : x.waits) {
        if (hands_on(upper(wait.index), x)) continue;
        const std::int32_t earlier = item_of_[at(wait.index)];
        (wait.iteration == 0 ? item.after : item.after_previous).push_back(earlier);
      }
    }
  }

  /// `x` takes bytes of the host that `before` used for something else.
  [[nodiscard]] bool hands_on(const Instruction& before, const Instruction& x) const {
    bool found = false;
    each_host_place(x, [&](const Placement& a) {
      each_host_place(before, [&](const Placement& b) {
        const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        found |= overlap && (a.offset != b.offset || a.tensor != b.tensor);
      });
    });
    return found;
  }

  template <class See>
  void each_host_place(const Instruction& x, See&& see) const {
    const auto one = [&](PlacementId id) {
      if (id != kNone && on_host(id)) see(in_.upper.placements[at(id)]);
    };
    one(x.from);
    one(x.to);
    for (const PlacementId id : x.operands) one(id);
  }

  const TwoPlans& in_;
  SpaceId host_;
  SpaceId file_;
  Script script_;
  std::vector<PlacementId> of_upper_;  ///< per placement of the upper plan; on the host: kNone
  std::vector<PlacementId> of_lower_;
  std::vector<std::int32_t> item_of_;  ///< per instruction of the upper plan
  std::size_t next_ = 0;               ///< in the order of the upper plan's instructions
};

}  // namespace

Result<Plan> join_tiers(const TwoPlans& plans) {
  return plan_of_script(plans.program, TierJoiner(plans).write());
}

}  // namespace tidepool
