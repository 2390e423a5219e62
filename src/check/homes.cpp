#include "check/homes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tidepool::checking {
namespace {

/// What each tensor at home needs of the plan, from the program and the boundary alone.
class Homes {
 public:
  explicit Homes(const Subject& subject)
      : subject_(subject),
        uses_(subject.program.tensors.size()),
        runs_(subject.program.ops.size(), 0),
        by_space_(subject.plan.arenas.size()) {
    const auto& list = subject.plan.steady.instructions;
    for (std::size_t i = list.size(); i > 0; --i) {
      if (list[i - 1].kind == InstructionKind::op) runs_[at(list[i - 1].op)] = i - 1;
    }
    for (OpId id = 0; id < std::ssize(subject.program.ops); ++id) {
      const Op& op = subject.program.ops[at(id)];
      for (const Access& a : op.accesses) {
        Uses& uses = uses_[at(a.tensor)];
        if (uses.first == kNone) uses.first = id;
        uses.last = id;
        if (op.place == OpPlace::device) uses.devices.insert(op.device);
      }
    }
  }

  void check() {
    for (TensorId t = 0; t < std::ssize(subject_.program.tensors); ++t) {
      if (subject_.program.tensors[at(t)].home == Home::anywhere) continue;
      for (const SpaceId device : uses_[at(t)].devices) check_home(t, device);
    }
    check_writes();
  }

 private:
  struct Uses {
    OpId first = kNone;
    OpId last = kNone;
    std::set<SpaceId> devices;
  };
  /// Bytes that nothing is written to after instruction `behind`, nor before `until`.
  struct Held {
    Touch bytes;
    std::optional<std::size_t> behind;
    std::optional<std::size_t> until;
  };

  [[nodiscard]] std::string who(std::size_t i) const {
    return subject_.describe("steady", subject_.plan.steady, i);
  }

  void check_home(TensorId t, SpaceId device) {
    const auto& boundary = subject_.plan.boundary;
    const auto home = std::ranges::find_if(boundary, [&](PlacementId id) {
      const Placement& p = subject_.plan.placements[at(id)];
      return p.tensor == t && p.space == device;
    });
    if (home == boundary.end()) {
      refute(7, "{} is not on device {} between iterations, which is its home",
             subject_.tensor_name(t), device);
    }
    Held held{subject_.touch(*home, false, true), {}, {}};
    if (runs_on(uses_[at(t)].first, device)) held.until = found_at_home(uses_[at(t)].first, held);
    if (runs_on(uses_[at(t)].last, device)) held.behind = found_at_home(uses_[at(t)].last, held);
    by_space_[at(device)].push_back(held);
  }

  [[nodiscard]] bool runs_on(OpId id, SpaceId device) const {
    const Op& op = subject_.program.ops[at(id)];
    return op.place == OpPlace::device && op.device == device;
  }

  /// The instruction that runs the op, which finds the tensor where it lies between iterations.
  [[nodiscard]] std::size_t found_at_home(OpId id, const Held& held) const {
    const Instruction& x = subject_.plan.steady.instructions[runs_[at(id)]];
    const auto& accesses = subject_.program.ops[at(id)].accesses;
    for (std::size_t k = 0; k < accesses.size(); ++k) {
      if (accesses[k].tensor != held.bytes.tensor) continue;
      const Placement& p = subject_.plan.placements[at(x.operands[k])];
      if (p.offset == held.bytes.begin) continue;
      refute(7, "{} uses {} at {}; between iterations it lies at {}, and may not move in between",
             who(runs_[at(id)]), subject_.tensor_name(p.tensor), p.offset, held.bytes.begin);
    }
    return runs_[at(id)];
  }

  void check_writes() {
    for (auto& held : by_space_) {
      std::ranges::sort(held, {}, [](const Held& h) { return h.bytes.begin; });
    }
    const auto& list = subject_.plan.steady.instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (const Touch& touch : subject_.touches(list[i])) {
        if (touch.writes) check_write(touch, i);
      }
    }
  }

  /// Values that are all there between iterations do not overlap.
  void check_write(const Touch& touch, std::size_t i) const {
    const auto& held = by_space_[at(touch.space)];
    auto h =
        std::ranges::upper_bound(held, touch.begin, {}, [](const Held& x) { return x.bytes.end; });
    for (; h != held.end() && h->bytes.begin < touch.end; ++h) {
      const bool after = h->behind && i > *h->behind;
      const bool before = h->until && i < *h->until;
      if (!after && !before) continue;
      refute(7, "{} writes over {}, which is at home {} {}", who(i),
             subject_.tensor_name(h->bytes.tensor), after ? "from" : "until",
             who(after ? *h->behind : *h->until));
    }
  }

  const Subject& subject_;
  std::vector<Uses> uses_;                   ///< per tensor
  std::vector<std::size_t> runs_;            ///< per op: the first instruction that runs it
  std::vector<std::vector<Held>> by_space_;  ///< by address
};

}  // namespace

void check_homes(const Subject& subject) {
  const bool any = std::ranges::any_of(subject.program.tensors,
                                       [](const Tensor& t) { return t.home != Home::anywhere; });
  if (any) Homes(subject).check();
}

}  // namespace tidepool::checking
