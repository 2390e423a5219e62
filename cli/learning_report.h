// What a planner that learns a Q-network did, for people and as JSON.
#pragma once

#include "base/json_fwd.h"
#include "planners/q_learning_record.h"

namespace tidepool::cli {

/// Null without a record.
Json learning_json(const QLearningRecord* record);
/// Return against steps, some of the episodes. Nothing without a record.
void print_learning(const QLearningRecord* record);

}  // namespace tidepool::cli
