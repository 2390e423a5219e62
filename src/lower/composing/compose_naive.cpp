#include <algorithm>

#include "base/at.h"
#include "lower/compose.h"
#include "lower/composing/composer.h"

namespace tidepool {
namespace {

/// Bytes of a device that nobody needs for a while, taken in turns.
class FreeBytes {
 public:
  /// `taken` are ranges [first, second) below `end`.
  FreeBytes(std::vector<std::pair<Bytes, Bytes>> taken, Bytes end, Bytes alignment)
      : end_(align_up(end, alignment)), alignment_(alignment) {
    std::ranges::sort(taken);
    Bytes begin = 0;
    for (const auto& [from, to] : taken) {
      add(begin, from);
      begin = std::max(begin, to);
    }
    add(begin, end);
  }

  /// So many bytes at once; behind the end where no range has as many.
  Bytes take(Bytes bytes) {
    for (std::size_t tried = 0; tried <= ranges_.size() && !ranges_.empty(); ++tried) {
      if (next_ + bytes <= ranges_[range_].second) {
        const Bytes offset = next_;
        next_ = align_up(next_ + bytes, alignment_);
        return offset;
      }
      range_ = (range_ + 1) % ranges_.size();
      next_ = ranges_[range_].first;
    }
    return end_;
  }

 private:
  void add(Bytes from, Bytes to) {
    from = align_up(from, alignment_);
    if (from >= to) return;
    if (ranges_.empty()) next_ = from;
    ranges_.emplace_back(from, to);
  }

  std::vector<std::pair<Bytes, Bytes>> ranges_;
  std::size_t range_ = 0;
  Bytes next_ = 0;
  Bytes end_;
  Bytes alignment_;
};

class Naive {
 public:
  explicit Naive(const PartPlan& input)
      : in_(input), c_(input, true), last_(input.part.tensors.size(), kNone), free_(free_bytes()) {}

  Result<Composed> run() {
    for (std::size_t i = 0; i < c_.list().size(); ++i) {
      const Instruction& x = c_.list()[i];
      if (c_.is_needless(x)) continue;
      if (c_.is_reduction(x)) {
        c_.is_on_host(x) ? c_.push_reduction(i) : add_reduction(i);
        continue;
      }
      for (std::int32_t d = 0; d < c_.devices(); ++d) {
        if (d > 0 || !is_gradient_out(x)) c_.push_instruction(i, d);
      }
    }
    return c_.finish();
  }

 private:
  [[nodiscard]] bool is_of_gradients(const Instruction& x) const {
    return c_.is_reduction(x) && !c_.is_on_host(x);
  }

  /// To where a reduction reads it, and nothing else does.
  [[nodiscard]] bool is_gradient_out(const Instruction& x) const {
    return x.kind == InstructionKind::copy && collected_[at(x.to)] != 0;
  }

  /// Where tensors lie on device 0 in the end, and what is free there then: all but what stays,
  /// what the updates use and what is still read behind the first reduction.
  FreeBytes free_bytes() {
    collected_.assign(in_.plan.placements.size(), 0);
    std::vector<PlacementId> needed = in_.plan.boundary;
    bool reduces = false;
    for (const Instruction& x : c_.list()) {
      if (is_of_gradients(x)) {
        reduces = true;
        collected_[at(x.operands[0])] = 1;
      }
      for_each_placement(x, [&](PlacementId id) {
        if (c_.on_host(id)) return;
        if (reduces) needed.push_back(id);
        if (x.kind == InstructionKind::op) last_[at(c_.of_part(id).tensor)] = id;
      });
    }
    for (const Instruction& x : c_.list()) {
      if (!is_of_gradients(x)) continue;
      for (const Access& a : c_.op_of_whole(x.op, 0).accesses) {
        if (const TensorId t = of_device_0(a.tensor); t != kNone) needed.push_back(last_[at(t)]);
      }
    }
    for (const Instruction& x : c_.list()) {
      // What comes back from there has to go there on device 0 too.
      if (x.kind == InstructionKind::copy) collected_[at(x.from)] = 0;
    }
    std::vector<std::pair<Bytes, Bytes>> taken;
    for (const PlacementId id : needed) {
      if (id == kNone || c_.on_host(id)) continue;
      taken.emplace_back(c_.of_part(id).offset, c_.of_part(id).offset + c_.of_part(id).bytes);
    }
    const Arena& arena = c_.script().arenas[0];
    // The state of weights lies behind the part's bytes.
    taken.emplace_back(in_.plan.arenas[0].bytes, arena.bytes);
    return {std::move(taken), arena.bytes, arena.alignment};
  }

  /// The tensor of the part, or kNone.
  [[nodiscard]] TensorId of_device_0(TensorId of_whole) const {
    const auto& tensors = in_.replication.tensors[0];
    const auto found = std::ranges::find(tensors, of_whole);
    return found == tensors.end() ? TensorId{kNone}
                                  : static_cast<TensorId>(found - tensors.begin());
  }

  void push_op(OpId op, PlacementId of_other) {
    ScriptItem item;
    item.stream = compute_;
    item.op = op;
    for (const Access& a : in_.whole.ops[at(op)].accesses) {
      const TensorId t = of_device_0(a.tensor);
      const bool other =
          of_other != kNone && c_.script().placements[at(of_other)].tensor == a.tensor;
      item.operands.push_back(other        ? of_other
                              : t != kNone ? c_.placed(0, last_[at(t)])
                                           : c_.once(a.tensor));
    }
    c_.push(std::move(item));
  }

  void add_reduction(std::size_t i) {
    const Instruction& x = c_.list()[i];
    for (const Instruction& y : c_.list()) {
      const bool op = y.kind == InstructionKind::op;
      if (op && in_.part.ops[at(y.op)].place == OpPlace::device) compute_ = c_.stream(0, y.stream);
    }
    const OpId update = in_.replication.ops[0][at(x.op)];
    for (std::int32_t d = 1; d < c_.devices(); ++d) {
      const PlacementId sent = c_.placed(d, x.operands[0]);
      const Placement& gradient = c_.script().placements[at(sent)];
      const PlacementId received = c_.place(gradient.tensor, 0, free_.take(gradient.bytes));
      c_.push_copy(c_.copies_in(0), sent, received);
      push_op(update - c_.devices() + d, received);
    }
    push_op(update, kNone);
    const TensorId weight = c_.weight_of(x);
    const PlacementId updated = c_.placed(0, last_[at(weight)]);
    c_.push_copy(c_.copies_out(0), updated, c_.host_copy(weight));
    const PlacementId stay = c_.stay_of(weight);
    for (std::int32_t d = 0; d < c_.devices() && stay != kNone; ++d) {
      if (c_.placed(d, stay) == updated) continue;
      c_.push_copy(c_.copies_in(d), c_.host_copy(weight), c_.placed(d, stay));
    }
  }

  const PartPlan& in_;
  Composer c_;
  std::vector<PlacementId> last_;  ///< per tensor of the part: its last place on the device
  std::vector<char> collected_;    ///< per placement of the part: a reduction reads it
  FreeBytes free_;
  StreamId compute_ = kNone;  ///< of device 0
};

}  // namespace

Result<Composed> compose_naive(const PartPlan& input) {
  if (input.plan.arenas.size() != 2) {
    return fail(ErrorCode::bad_input,
                "plans of several devices are made of one of a device and its host");
  }
  return Naive(input).run();
}

}  // namespace tidepool
