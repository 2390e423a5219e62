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

/// A state of gaps, each away or not.
template <class State>
concept GapState = requires(State& state, Random& random, std::size_t gap, double energy) {
  { state.propose(random) } -> std::convertible_to<std::size_t>;  // a gap that may matter
  { state.is_away(gap) } -> std::convertible_to<bool>;
  state.flip(gap);
  // Of the state as it is; one above the given energy may be anything above it.
  { state.energy(energy) } -> std::convertible_to<double>;
  // The state as it is, of the last energy, is the current one from now on.
  state.accept();
  { state.out_of_time() } -> std::convertible_to<bool>;
};

/// One round of cooling from the state as it is, whose energy is `current`. A trial flips a gap, or
/// exchanges one that is away for one that is not. Ends early when the state is out of time.
template <GapState State>
void anneal(State& state, double current, const Cooling& cooling, Random& random) {
  for (std::size_t trial = 0; trial < cooling.trials && !state.out_of_time(); ++trial) {
    const std::size_t first = state.propose(random);
    state.flip(first);
    std::size_t second = first;
    if (random.below(2) == 0) {
      second = state.propose(random);
      // Only what now is as the first has become goes the other way.
      if (state.is_away(second) != state.is_away(first)) second = first;
      if (second != first) state.flip(second);
    }
    const double accepted = current - cooling.temperature(trial) * std::log1p(-random.uniform());
    const double energy = state.energy(accepted);
    if (energy <= accepted) {
      current = energy;
      state.accept();
      continue;
    }
    if (second != first) state.flip(second);
    state.flip(first);
  }
}

}  // namespace tidepool
