// Settings of planners before the work, and the files of planners that learn a Q-network: what was
// learned, and how.
#pragma once

#include <span>
#include <string>

#include "planning/make_plan.h"
#include "planning/planning_spec.h"

namespace tidepool {

/// Before the work. Fails with `usage` where settings are for planners that none of these is, and
/// where a file cannot be read or written.
Result<void> check_planner_settings(std::span<const std::string> planners,
                                    const OptionValues& values);

/// Whether a record is asked for: then the planner has to plan, and no cache knows it.
bool keeps_record(const OptionValues& values);
/// The network and the log of the episodes, where they are asked for. Where nothing was learned,
/// a note of `planned` says that no network was written.
Result<void> write_learning(const OptionValues& values, Planned& planned);

/// A line for each episode: episode, steps, return, overhead, best, loss. No overhead: it is not
/// feasible.
std::string episode_csv(const QLearningRecord& record);

}  // namespace tidepool
