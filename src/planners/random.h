#pragma once

#include "planners/planner.h"

namespace tidepool {

/// Draws decisions from the seed: every gap is kept, swapped, dropped or recomputed, as far as the
/// program allows it and the budget still holds. No published system: the floor that every other
/// planner should beat, and the one that takes schedules where no score would (tests, `--verify`).
std::unique_ptr<Planner> make_random();

}  // namespace tidepool
