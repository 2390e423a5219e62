#include "check/placements.h"

#include <algorithm>
#include <string>
#include <vector>

#include "check/happens_before.h"

namespace tidepool::checking {
namespace {

/// Where each tensor lies as the steady state goes on, twice: what is moved at the end of an
/// iteration may be used in the next.
///
/// Note [One place]. In list order, a tensor gets another place only by being written there. All
/// its uses at the place it had must be over when that write begins. Uses at the new place come
/// after the write, since there are no races; so they come after those at the old place too.
class Places {
 public:
  explicit Places(const Subject& subject)
      : subject_(subject),
        pinned_at_(subject.program.tensors.size(), kNone),
        current_(subject.program.tensors.size(), kNone),
        uses_(subject.program.tensors.size()),
        before_(subject.plan.steady, subject.plan.streams.size(), 2) {
    for (const PlacementId id : subject.plan.boundary) {
      const TensorId t = subject.plan.placements[at(id)].tensor;
      if (subject.program.tensors[at(t)].pinned) pinned_at_[at(t)] = id;
      if (on_device(id)) current_[at(t)] = id;
    }
  }

  void check() {
    for (event_ = 0; event_ < before_.events(); ++event_) {
      const Instruction& x = instruction(event_);
      if (x.kind == InstructionKind::copy) {
        use(x.from, false);
        use(x.to, true);
        continue;
      }
      const Op& op = subject_.program.ops[at(x.op)];
      for (std::size_t k = 0; k < x.operands.size(); ++k) {
        use(x.operands[k], op.accesses[k].mode == AccessMode::write);
      }
      for (const PlacementId id : subject_.released_by(x)) use(id, false);
    }
  }

 private:
  [[nodiscard]] bool on_device(PlacementId id) const {
    return subject_.plan.kind_of(id) == SpaceKind::device;
  }
  [[nodiscard]] bool same_bytes(PlacementId a, PlacementId b) const {
    const Placement& p = subject_.plan.placements[at(a)];
    const Placement& q = subject_.plan.placements[at(b)];
    return p.space == q.space && p.offset == q.offset;
  }
  [[nodiscard]] const Instruction& instruction(std::size_t event) const {
    const auto& list = subject_.plan.steady.instructions;
    return list[event % list.size()];
  }
  [[nodiscard]] std::string who(std::size_t event) const {
    return subject_.describe("steady", subject_.plan.steady,
                             event % subject_.plan.steady.instructions.size());
  }
  [[nodiscard]] Bytes offset(PlacementId id) const {
    return subject_.plan.placements[at(id)].offset;
  }

  void use(PlacementId id, bool overwrites) {
    const TensorId t = subject_.plan.placements[at(id)].tensor;
    if (subject_.program.tensors[at(t)].pinned) {
      const Instruction& x = instruction(event_);
      PlacementId& pinned_at = pinned_at_[at(t)];
      if (pinned_at == kNone) pinned_at = id;
      if (x.kind == InstructionKind::copy || !same_bytes(pinned_at, id)) {
        refute(6, "{} moves {}, which is pinned", who(event_), subject_.tensor_name(t));
      }
    }
    if (!subject_.program.single_placements || !on_device(id)) return;
    PlacementId& current = current_[at(t)];
    const bool moves = current != kNone && !same_bytes(current, id);
    if (moves && !overwrites) {
      refute(6, "{} uses {} at {}, after it got a place at {}", who(event_),
             subject_.tensor_name(t), offset(id), offset(current));
    }
    if (moves) leave(current, id);
    current = id;
    add_use(uses_[at(t)]);
  }

  /// The tensor is written at `to`: its uses at `from` must be over.
  void leave(PlacementId from, PlacementId to) {
    const TensorId t = subject_.plan.placements[at(from)].tensor;
    for (const std::size_t earlier : uses_[at(t)]) {
      // A copy within the device.
      if (earlier == event_ || before_.ordered(earlier, event_)) continue;
      refute(6, "{} gives {} a place at {}, and does not wait for {}, which uses it at {}",
             who(event_), subject_.tensor_name(t), offset(to), who(earlier), offset(from));
    }
    uses_[at(t)].clear();
  }

  /// The latest of each stream is enough.
  void add_use(std::vector<std::size_t>& uses) const {
    const auto same = std::ranges::find_if(uses, [&](std::size_t earlier) {
      return instruction(earlier).stream == instruction(event_).stream;
    });
    if (same != uses.end()) {
      *same = event_;
    } else {
      uses.push_back(event_);
    }
  }

  const Subject& subject_;
  std::vector<PlacementId> pinned_at_;          ///< per tensor
  std::vector<PlacementId> current_;            ///< per tensor: its place on a device
  std::vector<std::vector<std::size_t>> uses_;  ///< per tensor: events there, the last per stream
  HappensBefore before_;
  std::size_t event_ = 0;
};

/// Bytes that are taken although nobody need use them in between: those of pinned tensors from
/// their first use in an iteration to their last, of persistent ones always, and those that stay
/// taken after a last access until they are released. Nothing else is written there meanwhile.
class HeldBytes {
 public:
  explicit HeldBytes(const Subject& subject) : subject_(subject) {
    const auto& list = subject.plan.steady.instructions;
    begins_.resize(list.size());
    std::vector<std::size_t> of_pinned(subject.program.tensors.size(), kNowhere);
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (const PlacementId id : list[i].operands) pin(of_pinned, id, i);
    }
    for (const PlacementId id : subject.plan.boundary) {
      const TensorId t = subject.plan.placements[at(id)].tensor;
      if (!subject.program.tensors[at(t)].pinned) continue;
      if (of_pinned[at(t)] == kNowhere) continue;
      held_[of_pinned[at(t)]].begin = 0;
      held_[of_pinned[at(t)]].end = list.size();
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (const PlacementId id : subject.released_by(list[i])) release(id, i);
    }
    for (std::size_t h = 0; h < held_.size(); ++h) begins_[held_[h].begin].push_back(h);
  }

  void check() const {
    if (held_.empty()) return;
    const auto& list = subject_.plan.steady.instructions;
    std::vector<std::size_t> now;
    for (std::size_t i = 0; i < list.size(); ++i) {
      now.insert(now.end(), begins_[i].begin(), begins_[i].end());
      std::erase_if(now, [&](std::size_t h) { return held_[h].end < i; });
      if (now.empty()) continue;
      for (const Touch& touch : subject_.touches(list[i])) {
        for (const std::size_t h : now) judge(held_[h], touch, i);
      }
    }
  }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  struct Held {
    PlacementId placement = kNone;
    std::size_t begin = 0;  ///< instructions of the steady state, both of them too
    std::size_t end = 0;
  };

  void pin(std::vector<std::size_t>& of_pinned, PlacementId id, std::size_t i) {
    const TensorId t = subject_.plan.placements[at(id)].tensor;
    if (!subject_.program.tensors[at(t)].pinned) return;
    if (of_pinned[at(t)] == kNowhere) {
      of_pinned[at(t)] = held_.size();
      held_.push_back({id, i, i});
    }
    held_[of_pinned[at(t)]].end = i;
  }

  /// From the last use in front of the release on.
  void release(PlacementId id, std::size_t released) {
    const auto& list = subject_.plan.steady.instructions;
    std::size_t last = released;
    for (std::size_t i = 0; i < released; ++i) {
      if (std::ranges::find(list[i].operands, id) != list[i].operands.end()) last = i;
    }
    held_.push_back({id, last, released});
  }

  void judge(const Held& held, const Touch& touch, std::size_t i) const {
    const Touch bytes = subject_.touch(held.placement, false, true);
    const bool apart = touch.space != bytes.space || touch.end <= bytes.begin ||
                       touch.begin >= bytes.end || touch.tensor == bytes.tensor;
    if (!touch.writes || apart) return;
    refute(6, "{} writes over the bytes of {}, which are taken until {}",
           subject_.describe("steady", subject_.plan.steady, i), subject_.tensor_name(bytes.tensor),
           held.end < subject_.plan.steady.instructions.size()
               ? subject_.describe("steady", subject_.plan.steady, held.end)
               : "the iteration's end");
  }

  const Subject& subject_;
  std::vector<Held> held_;
  std::vector<std::vector<std::size_t>> begins_;  ///< per instruction
};

}  // namespace

void check_placements(const Subject& subject) {
  const bool pinned = std::ranges::any_of(subject.program.tensors, &Tensor::pinned);
  if (pinned || subject.program.single_placements) Places(subject).check();
  HeldBytes(subject).check();
}

}  // namespace tidepool::checking
