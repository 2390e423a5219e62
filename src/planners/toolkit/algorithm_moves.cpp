#include "planners/toolkit/algorithm_moves.h"

#include "base/at.h"

namespace tidepool {

AlgorithmMoves::AlgorithmMoves(const Lowering& lowering, const AlgorithmSpace& space,
                               RoomMoves& room)
    : space_(space), room_(room), choice_of_(lowering.program().ops.size(), kNone) {
  for (std::size_t c = 0; c < space.choices().size(); ++c) {
    choice_of_[at(space.choices()[c].op)] = static_cast<std::int32_t>(c);
  }
}

void AlgorithmMoves::change_algorithms(const State& state, Random& random) {
  room_.begin(state);
  const std::size_t choice = space_.random_choice(random);
  const std::size_t before = space_.choices()[choice].position(state.algorithms);
  std::size_t now = random.below(space_.choices()[choice].candidates.size() - 1);
  if (now >= before) ++now;
  const std::span group = space_.group_of(choice);
  const bool together = group.size() > 1 && random.below(2) == 0;
  const auto changed = together ? group : std::span<const std::size_t>(&choice, 1);
  for (const std::size_t c : changed) {
    const AlgorithmSpace::Choice& of = space_.choices()[c];
    room_.run_other(of.op, of.candidates[now].algorithm);
  }
  if (random.below(4) == 0) return;
  for (const std::size_t c : changed) {
    const OpId op = space_.choices()[c].op;
    if (now > before) {
      room_.make_room(state, op, random);
    } else {
      room_.use_room(state, op, random);
    }
  }
}

void AlgorithmMoves::change_gap(const State& state, GapId g, char away) {
  room_.begin(state);
  room_.become(g, away);
  room_.each_op_in(g, [&](OpId op) {
    if (choice_of_[at(op)] == kNone) return;
    const AlgorithmSpace::Choice& choice = space_.choices()[at(choice_of_[at(op)])];
    const std::size_t before = choice.position(state.algorithms);
    const Bytes room = state.limit - state.load[at(op)];
    const Bytes then = state.limit - room_.load(op);
    std::size_t now = before;
    if (away != kStays) {
      for (std::size_t k = before + 1; k < choice.candidates.size(); ++k) {
        const Bytes needs = choice.candidates[k].workspace;
        if (needs > room && needs <= then) now = k;
      }
    } else {
      while (now > 0 && choice.candidates[now].workspace > then) --now;
    }
    if (now != before) room_.run_other(op, choice.candidates[now].algorithm);
  });
}

}  // namespace tidepool
