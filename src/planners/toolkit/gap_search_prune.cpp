// What GapSearch does behind a round of cooling: it takes back what saves nothing.
#include <algorithm>

#include "base/at.h"
#include "planners/toolkit/gap_search.h"

namespace tidepool {

void GapSearch::prune() {
  assign_best();
  take_faster_algorithms();
  bring_back();
  best_ = away_;
  take_triggers_away();
}

/// Those that save nothing.
void GapSearch::take_triggers_away() {
  triggers_.assign(in_effect(best_triggers_, strategy_.gaps));
  best_triggers_ = triggers_.triggers();
  for (const CopyHint& trigger : Triggers(best_triggers_)) {
    if (out_of_time()) return;
    triggers_.take_away(trigger.gap);
    const Value value = evaluate_up_to_best();
    if (value.time <= best_value_.time) {
      best_value_ = value;
      best_triggers_ = triggers_.triggers();
    } else {
      triggers_.undo();
    }
  }
}

void GapSearch::bring_back() {
  std::vector<GapId> order;
  std::copy_if(movable_.begin(), movable_.end(), std::back_inserter(order),
               [this](GapId g) { return away_[at(g)] != kStays; });
  std::stable_sort(order.begin(), order.end(),
                   [this](GapId a, GapId b) { return bytes(a) > bytes(b); });
  for (const GapId g : order) {
    if (out_of_time()) break;
    const char before = away_[at(g)];
    set(g, kStays);
    const Value value = evaluate_up_to_best();
    if (value.better_than(best_value_)) {
      best_value_ = value;
    } else {
      set(g, before);
    }
  }
}

/// Whole groups, then single ops.
void GapSearch::take_faster_algorithms() {
  if (!may_choose()) return;
  for (const auto& group : space_->groups()) {
    if (out_of_time()) return;
    if (take_faster_algorithm(group) || group.size() == 1) continue;
    for (const std::size_t choice : group) {
      if (out_of_time()) return;
      take_faster_algorithm(std::span(&choice, 1));
    }
  }
}

/// The fastest for all of these with which the iteration is faster than the best. False: none is.
bool GapSearch::take_faster_algorithm(std::span<const std::size_t> choices) {
  std::size_t slowest = position(choices.front());
  for (const std::size_t c : choices) slowest = std::min(slowest, position(c));
  for (std::size_t k = space_->choices()[choices.front()].candidates.size(); --k > slowest;) {
    if (out_of_time()) return false;
    for (const std::size_t c : choices) {
      const AlgorithmSpace::Choice& choice = space_->choices()[c];
      if (position(c) < k) strategy_.algorithms[at(choice.op)] = choice.candidates[k].algorithm;
    }
    const Value value = evaluate_up_to_best();
    if (value.better_than(best_value_)) {
      best_value_ = value;
      best_algorithms_ = strategy_.algorithms;
      return true;
    }
    strategy_.algorithms = best_algorithms_;
  }
  return false;
}

}  // namespace tidepool
