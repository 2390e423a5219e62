#include "planners/toolkit/room_moves.h"

#include <algorithm>

#include "base/at.h"
#include "planners/toolkit/unstalled_starts.h"

namespace tidepool {

RoomMoves::RoomMoves(const Lowering& lowering, const std::vector<std::int32_t>& fastest,
                     std::span<const GapId> movable, std::span<const RemakableGap> remakable)
    : lowering_(lowering),
      remakable_(lowering.index().gaps().size()),
      over_(lowering.program().ops.size()),
      known_(lowering.program().ops.size()) {
  const Program& program = lowering.program();
  const Machine& machine = lowering.machine();
  const auto starts = unstalled_starts(program, fastest);
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
    remakable_[at(r.gap)] = true;
    gaps_.push_back({r.gap, kRemade, aligned(r.gap),
                     static_cast<double>(r.time.count()) / static_cast<double>(r.bytes)});
  }
}

Bytes RoomMoves::aligned(GapId g) const {
  const TensorId t = lowering_.index().gaps()[at(g)].tensor;
  return align_up(lowering_.program().tensors[at(t)].bytes, lowering_.machine().alignment());
}

bool RoomMoves::spans(const Gap& gap, OpId op) const {
  return gap.wraps ? op > gap.from || op < gap.to : op > gap.from && op < gap.to;
}

std::span<const std::int32_t> RoomMoves::over(OpId op) {
  constexpr std::size_t kMostListed = std::size_t{1} << 22;
  if (known_[at(op)]) return over_[at(op)];
  if (listed_ > kMostListed) {
    for (auto& list : over_) list = {};
    known_.assign(known_.size(), false);
    listed_ = 0;
  }
  known_[at(op)] = true;
  for (std::size_t i = 0; i < gaps_.size(); ++i) {
    if (spans(lowering_.index().gaps()[at(gaps_[i].gap)], op)) {
      over_[at(op)].push_back(static_cast<std::int32_t>(i));
    }
  }
  listed_ += over_[at(op)].size();
  return over_[at(op)];
}

bool RoomMoves::moves(GapId gap) const {
  return std::any_of(move_.gaps.begin(), move_.gaps.end(),
                     [&](const auto& moved) { return moved.first == gap; });
}

void RoomMoves::become(GapId g, char away) {
  move_.gaps.emplace_back(g, away);
  const Bytes bytes = away == kStays ? aligned(g) : -aligned(g);
  each_op_in(g, [&](OpId op) { load_[at(op)] += bytes; });
}

/// Of the load over the limit.
Bytes RoomMoves::excess(const State& state, OpId op) const {
  std::int32_t algorithm = state.algorithms[at(op)];
  for (const auto& [changed, now] : move_.algorithms) {
    if (changed == op) algorithm = now;
  }
  const Bytes workspace = lowering_.program().ops[at(op)].algorithms[at(algorithm)].workspace;
  return load_[at(op)] + align_up(workspace, lowering_.machine().alignment()) - state.limit;
}

void RoomMoves::begin(const State& state) {
  move_.algorithms.clear();
  move_.gaps.clear();
  load_.assign(state.load.begin(), state.load.end());
}

void RoomMoves::make_room(const State& state, OpId op, Random& random) {
  constexpr std::size_t kSampled = 6;
  constexpr int kMost = 24;
  const auto all = over(op);
  if (all.empty()) return;
  for (int i = 0; i < kMost; ++i) {
    const Bytes missing = excess(state, op);
    if (missing <= 0) return;
    const Over* best = nullptr;
    double least = 0;
    for (std::size_t k = 0; k < kSampled; ++k) {
      const Over& o = gaps_[at(all[random.below(all.size())])];
      if (state.away[at(o.gap)] != kStays || moves(o.gap)) continue;
      // A byte that is not missing is worth nothing.
      const double useful =
          static_cast<double>(std::min(o.bytes, missing)) / static_cast<double>(o.bytes);
      const double price = o.price / useful * (0.5 + random.uniform());
      if (best != nullptr && price >= least) continue;
      best = &o;
      least = price;
    }
    if (best != nullptr) become(best->gap, best->away);
  }
}

void RoomMoves::use_room(const State& state, OpId op, Random& random) {
  constexpr int kTries = 16;
  const auto all = over(op);
  if (all.empty()) return;
  for (int i = 0; i < kTries; ++i) {
    const Over& o = gaps_[at(all[random.below(all.size())])];
    if (state.away[at(o.gap)] != o.away || moves(o.gap)) continue;
    bool fits = true;
    each_op_in(o.gap, [&](OpId k) { fits = fits && excess(state, k) + o.bytes <= 0; });
    if (fits) become(o.gap, kStays);
  }
}

void RoomMoves::make_room_in(const State& state, GapId g, Random& random) {
  // Where most is missing first: what leaves there makes room elsewhere too.
  constexpr int kPlaces = 8;
  for (int i = 0; i < kPlaces; ++i) {
    OpId worst = kNone;
    Bytes most = 0;
    each_op_in(g, [&](OpId op) {
      const Bytes missing = excess(state, op);
      if (missing <= most) return;
      most = missing;
      worst = op;
    });
    if (worst == kNone) return;
    make_room(state, worst, random);
  }
}

void RoomMoves::exchange(const State& state, GapId g, Random& random) {
  begin(state);
  if (state.away[at(g)] != kStays) {
    become(g, kStays);
    make_room_in(state, g, random);
    return;
  }
  become(g, remakable_[at(g)] && random.below(2) == 0 ? kRemade : kCopied);
  std::size_t count = 0;
  each_op_in(g, [&](OpId) { ++count; });
  if (count == 0) return;
  const std::size_t first = at(lowering_.index().gaps()[at(g)].from) + 1;
  const std::size_t op = (first + random.below(count)) % lowering_.program().ops.size();
  use_room(state, static_cast<OpId>(op), random);
}

}  // namespace tidepool
