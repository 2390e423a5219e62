#include "planners/toolkit/algorithm_moves.h"

#include <algorithm>
#include <cmath>

#include "base/at.h"
#include "planners/toolkit/unstalled_starts.h"

namespace tidepool {

AlgorithmMoves::AlgorithmMoves(const Lowering& lowering, const AlgorithmSpace& space,
                               std::span<const GapId> movable,
                               std::span<const RemakableGap> remakable)
    : lowering_(lowering),
      space_(space),
      over_(lowering.program().ops.size()),
      known_(lowering.program().ops.size()),
      choice_of_(lowering.program().ops.size(), kNone) {
  const Program& program = lowering.program();
  const Machine& machine = lowering.machine();
  const auto starts = unstalled_starts(program, space.fastest());
  const auto aligned = [&](GapId g) {
    const TensorId t = lowering.index().gaps()[at(g)].tensor;
    return align_up(program.tensors[at(t)].bytes, machine.alignment());
  };
  for (const GapId g : movable) {
    const Gap& gap = lowering.index().gaps()[at(g)];
    const Bytes bytes = program.tensors[at(gap.tensor)].bytes;
    const auto copies = static_cast<double>(
        (machine.to_away().time(bytes) + machine.from_away().time(bytes)).count());
    const Nanos whole = gap.wraps ? starts.back() : Nanos{0};
    const auto window =
        static_cast<double>((whole + starts[at(gap.to)] - starts[at(gap.from) + 1]).count());
    const double hurry = copies / std::max(window, 1.0);
    gaps_.push_back(
        {g, kCopied, aligned(g), (copies / static_cast<double>(bytes)) * (0.2 + hurry)});
  }
  for (const RemakableGap& r : remakable) {
    gaps_.push_back({r.gap, kRemade, aligned(r.gap),
                     static_cast<double>(r.time.count()) / static_cast<double>(r.bytes)});
  }
  for (std::size_t c = 0; c < space.choices().size(); ++c) {
    choice_of_[at(space.choices()[c].op)] = static_cast<std::int32_t>(c);
  }
}

bool AlgorithmMoves::spans(const Gap& gap, OpId op) const {
  return gap.wraps ? op > gap.from || op < gap.to : op > gap.from && op < gap.to;
}

template <class See>
void AlgorithmMoves::each_op_in(const Gap& gap, See&& see) const {
  const auto ops = static_cast<OpId>(lowering_.program().ops.size());
  for (OpId op = gap.from + 1; op < (gap.wraps ? ops : gap.to); ++op) see(op);
  if (!gap.wraps) return;
  for (OpId op = 0; op < gap.to; ++op) see(op);
}

std::span<const AlgorithmMoves::Over> AlgorithmMoves::over(OpId op) {
  if (!known_[at(op)]) {
    known_[at(op)] = true;
    for (const Over& o : gaps_) {
      if (spans(lowering_.index().gaps()[at(o.gap)], op)) over_[at(op)].push_back(o);
    }
  }
  return over_[at(op)];
}

bool AlgorithmMoves::moves(GapId gap) const {
  return std::any_of(move_.gaps.begin(), move_.gaps.end(),
                     [&](const auto& moved) { return moved.first == gap; });
}

void AlgorithmMoves::leave(const Over& o, Bytes bytes) {
  each_op_in(lowering_.index().gaps()[at(o.gap)], [&](OpId op) { load_[at(op)] -= bytes; });
}

Bytes AlgorithmMoves::workspace(const State& state, OpId op) const {
  std::int32_t algorithm = state.algorithms[at(op)];
  for (const auto& [changed, now] : move_.algorithms) {
    if (changed == op) algorithm = now;
  }
  return align_up(lowering_.program().ops[at(op)].algorithms[at(algorithm)].workspace,
                  lowering_.machine().alignment());
}

void AlgorithmMoves::change_algorithms(const State& state, Random& random) {
  move_.algorithms.clear();
  move_.gaps.clear();
  const std::size_t choice = space_.random_choice(random);
  const std::size_t before = space_.choices()[choice].position(state.algorithms);
  std::size_t now = random.below(space_.choices()[choice].candidates.size() - 1);
  if (now >= before) ++now;
  const std::span group = space_.group_of(choice);
  const bool together = group.size() > 1 && random.below(2) == 0;
  const auto changed = together ? group : std::span<const std::size_t>(&choice, 1);
  for (const std::size_t c : changed) {
    const AlgorithmSpace::Choice& of = space_.choices()[c];
    move_.algorithms.emplace_back(of.op, of.candidates[now].algorithm);
  }
  if (random.below(4) == 0) return;
  load_.assign(state.load.begin(), state.load.end());
  for (const std::size_t c : changed) {
    const AlgorithmSpace::Choice& of = space_.choices()[c];
    if (now > before) {
      make_room(state, of.op, of.candidates[now].workspace, random);
    } else {
      use_room(state, of.op, random);
    }
  }
}

void AlgorithmMoves::make_room(const State& state, OpId op, Bytes workspace, Random& random) {
  constexpr std::size_t kSampled = 6;
  constexpr int kMost = 24;
  const auto all = over(op);
  if (all.empty()) return;
  for (int i = 0; i < kMost && load_[at(op)] + workspace > state.limit; ++i) {
    const Over* best = nullptr;
    double least = 0;
    for (std::size_t k = 0; k < kSampled; ++k) {
      const Over& o = all[random.below(all.size())];
      if (state.away[at(o.gap)] != kStays || moves(o.gap)) continue;
      const double price = o.price * (0.5 + random.uniform());
      if (best != nullptr && price >= least) continue;
      best = &o;
      least = price;
    }
    if (best == nullptr) continue;
    move_.gaps.emplace_back(best->gap, best->away);
    leave(*best, best->bytes);
  }
}

/// Gaps that fit at every op they span.
void AlgorithmMoves::use_room(const State& state, OpId op, Random& random) {
  constexpr int kTries = 16;
  const auto all = over(op);
  if (all.empty()) return;
  for (int i = 0; i < kTries; ++i) {
    const Over& o = all[random.below(all.size())];
    if (state.away[at(o.gap)] != o.away || moves(o.gap)) continue;
    bool fits = true;
    each_op_in(lowering_.index().gaps()[at(o.gap)], [&](OpId k) {
      fits = fits && load_[at(k)] + o.bytes + workspace(state, k) <= state.limit;
    });
    if (!fits) continue;
    move_.gaps.emplace_back(o.gap, kStays);
    leave(o, -o.bytes);
  }
}

void AlgorithmMoves::change_gap(const State& state, GapId g, char away) {
  move_.algorithms.clear();
  move_.gaps.assign(1, {g, away});
  const Gap& gap = lowering_.index().gaps()[at(g)];
  const Bytes bytes =
      align_up(lowering_.program().tensors[at(gap.tensor)].bytes, lowering_.machine().alignment());
  const bool leaves = away != kStays;
  each_op_in(gap, [&](OpId op) {
    if (choice_of_[at(op)] == kNone) return;
    const AlgorithmSpace::Choice& choice = space_.choices()[at(choice_of_[at(op)])];
    const std::size_t before = choice.position(state.algorithms);
    const Bytes room = state.limit - state.load[at(op)];
    const Bytes then = leaves ? room + bytes : room - bytes;
    std::size_t now = before;
    if (leaves) {
      for (std::size_t k = before + 1; k < choice.candidates.size(); ++k) {
        const Bytes needs = choice.candidates[k].workspace;
        if (needs > room && needs <= then) now = k;
      }
    } else {
      while (now > 0 && choice.candidates[now].workspace > then) --now;
    }
    if (now != before) move_.algorithms.emplace_back(op, choice.candidates[now].algorithm);
  });
}

}  // namespace tidepool
