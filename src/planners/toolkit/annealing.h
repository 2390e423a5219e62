// Annealing over which gaps are away: what the searches on the timeline and on the evaluator share.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>

#include "base/random.h"

namespace tidepool {

/// The temperature falls geometrically over a round of so many trials.
struct Cooling {
  double hot = 0;
  double cold = 0;
  std::size_t trials = 0;

  [[nodiscard]] double temperature(std::size_t trial) const {
    const double cooled = static_cast<double>(trial) / static_cast<double>(trials);
    return hot * std::pow(cold / hot, cooled);
  }
};

template <class State>
concept Annealed = requires(State& state, Random& random, double energy) {
  state.change(random);  // a trial
  state.undo();          // the last change
  // Of the state as it is; one above the given energy may be anything above it.
  { state.energy(energy) } -> std::convertible_to<double>;
  // The state as it is, of the last energy, is the current one from now on.
  state.accept();
  { state.out_of_time() } -> std::convertible_to<bool>;
};

/// A state of gaps, each away or not.
template <class State>
concept GapState = requires(State& state, Random& random, std::size_t gap) {
  { state.propose(random) } -> std::convertible_to<std::size_t>;  // a gap that may matter
  { state.is_away(gap) } -> std::convertible_to<bool>;
  state.flip(gap);
};

/// A trial for states of gaps: flips one, or exchanges one that is away for one that is not.
class FlipOrExchange {
 public:
  template <GapState State>
  void change(State& state, Random& random) {
    first_ = second_ = state.propose(random);
    state.flip(first_);
    if (random.below(2) != 0) return;
    second_ = state.propose(random);
    // Only what now is as the first has become goes the other way.
    if (state.is_away(second_) != state.is_away(first_)) second_ = first_;
    if (second_ != first_) state.flip(second_);
  }
  template <GapState State>
  void undo(State& state) const {
    if (second_ != first_) state.flip(second_);
    state.flip(first_);
  }

 private:
  std::size_t first_ = 0;
  std::size_t second_ = 0;
};

/// One round of cooling from the state as it is, whose energy is `current`. Ends early when the
/// state is out of time.
template <Annealed State>
void anneal(State& state, double current, const Cooling& cooling, Random& random) {
  for (std::size_t trial = 0; trial < cooling.trials && !state.out_of_time(); ++trial) {
    state.change(random);
    const double accepted = current - cooling.temperature(trial) * std::log1p(-random.uniform());
    const double energy = state.energy(accepted);
    if (energy <= accepted) {
      current = energy;
      state.accept();
      continue;
    }
    state.undo();
  }
}

}  // namespace tidepool
