// A random program under a random strategy (with triggers and barriers in half of the cases) and
// budget, lowered.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "lower/lower.h"
#include "support/random_program.h"
#include "support/spill_machine.h"

namespace tidepool::testing {

struct RandomPlan {
  Program program;
  Machine machine;
  Budget budget;
  Lowered lowered;
};

/// Budgets go from the smallest that can be to a tenth above the strategy's own peak. Nothing, and
/// a failed test, when lowering refuses.
inline std::optional<RandomPlan> random_plan(std::uint64_t seed, const RandomShape& shape = {},
                                             bool with_file = false) {
  RandomPlan c;
  c.program = random_program(seed, shape);
  c.machine = random_machine(seed, shape.alignment);
  if (with_file) c.machine = with_random_file(c.machine, seed);
  Random random(seed);
  Lowering lowering(c.program, c.machine);
  const double density = 1 - std::pow(random.uniform(), 2);
  Strategy strategy = random_strategy(c.program, lowering.index(), density, seed);
  if (random.below(2) == 0) {
    add_random_hints(c.program, lowering.index(), random.uniform(), seed, strategy);
  }
  const LoadProfile profile =
      load_profile(c.program, lowering.index(), c.machine.alignment(), strategy.algorithms);
  const Bytes least = smallest_budget(c.program, c.machine.alignment()).bytes;
  const double share = random.uniform() * 1.1;
  c.budget.device = least + static_cast<Bytes>(share * static_cast<double>(profile.peak - least));
  c.budget.device = std::max(c.budget.device, least);
  auto lowered = lowering.lower(strategy, c.budget);
  if (!lowered) {
    ADD_FAILURE() << "seed " << seed << ": " << lowered.error().message;
    return std::nullopt;
  }
  c.lowered = std::move(*lowered);
  return c;
}

/// By a random strategy, in a quarter more than the smallest budget.
inline Lowered lower_at_random(const Program& program, std::uint64_t seed,
                               Bytes alignment = RandomShape{}.alignment) {
  Lowering lowering(program, random_machine(seed, alignment));
  const Bytes least = smallest_budget(program, alignment).bytes;
  const Strategy strategy = random_strategy(program, lowering.index(), 0.7, seed);
  return *lowering.lower(strategy, {least + least / 4, 0});
}

}  // namespace tidepool::testing
