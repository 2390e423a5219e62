#include "check/placements.h"

namespace tidepool::checking {
namespace {

/// Where each tensor lies as the steady state goes on, in list order.
class Places {
 public:
  explicit Places(const Subject& subject)
      : subject_(subject),
        pinned_at_(subject.program.tensors.size(), kNone),
        current_(subject.program.tensors.size(), kNone) {
    for (const PlacementId id : subject.plan.boundary) {
      const TensorId t = subject.plan.placements[at(id)].tensor;
      if (subject.program.tensors[at(t)].pinned) pinned_at_[at(t)] = id;
      if (on_device(id)) current_[at(t)] = id;
    }
  }

  /// Twice, since what is moved at the end of an iteration may be used in the next.
  void check() {
    const auto& list = subject_.plan.steady.instructions;
    for (std::size_t e = 0; e < 2 * list.size(); ++e) {
      position_ = e % list.size();
      const Instruction& x = list[position_];
      if (x.kind == InstructionKind::copy) {
        use(x.from, false);
        use(x.to, true);
        continue;
      }
      const Op& op = subject_.program.ops[at(x.op)];
      for (std::size_t k = 0; k < x.operands.size(); ++k) {
        use(x.operands[k], op.accesses[k].mode == AccessMode::write);
      }
      for (const PlacementId id : subject_.released_by(x.op)) use(id, false);
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
  [[nodiscard]] std::string who() const {
    return subject_.describe("steady", subject_.plan.steady, position_);
  }

  void use(PlacementId id, bool overwrites) {
    const TensorId t = subject_.plan.placements[at(id)].tensor;
    if (subject_.program.tensors[at(t)].pinned) {
      const Instruction& x = subject_.plan.steady.instructions[position_];
      PlacementId& pinned_at = pinned_at_[at(t)];
      if (pinned_at == kNone) pinned_at = id;
      if (x.kind == InstructionKind::copy || !same_bytes(pinned_at, id)) {
        refute(6, "{} moves {}, which is pinned", who(), subject_.tensor_name(t));
      }
    }
    if (!subject_.program.single_placements || !on_device(id)) return;
    PlacementId& current = current_[at(t)];
    if (!overwrites && current != kNone && !same_bytes(current, id)) {
      refute(6, "{} uses {} at {}, after it got a place at {}", who(), subject_.tensor_name(t),
             subject_.plan.placements[at(id)].offset, subject_.plan.placements[at(current)].offset);
    }
    current = id;
  }

  const Subject& subject_;
  std::vector<PlacementId> pinned_at_;  ///< per tensor
  std::vector<PlacementId> current_;    ///< per tensor: its place on a device
  std::size_t position_ = 0;            ///< of the instruction
};

}  // namespace

void check_placements(const Subject& subject) { Places(subject).check(); }

}  // namespace tidepool::checking
