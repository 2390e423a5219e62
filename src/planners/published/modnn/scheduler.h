// moDNN's scheduler: data transfers and algorithms, task by task.
//
// Source: section 5.2, Algorithm 1, of the paper (see memory_manager.h).
//
// Note [Algorithm 1]. Each task in turn: places for inputs that are away and for outputs, by
// offloading what is in the way; the algorithm with the largest gain; then copies in for later
// tasks that would come too late otherwise. See Notes [Offloading scheme], [Stage] and [Predicted
// defragmentation].
//   Expected start of a task: now, plus the times of the tasks in between with the fastest
//   algorithms. That is the sum of all tasks before it plus every delay so far.
//   Prefetching begins now (equation 9) where, begun after this task, when the data stream is done
//   with what it has, it would end after the expected start.
//   Gain of an algorithm (equation 10): the time it saves against the baseline, minus the delay
//   that space for its workspace takes, minus the copies in that are due now for the next task
//   which misses something and that no longer fit beside the workspace.
//   Defragmentation: everything that moves leaves; what the task needs comes back, the largest
//   first, into memory without holes.
//
// What the paper leaves open, or this system sees otherwise:
// - Every op with several algorithms is one to choose for. The baseline is that of the least
//   workspace; only algorithms that repeat their bits count.
// - For a prefetch, the tasks that need a block "immediately" are all up to the one it is for.
// - Copies in delayed by a workspace count only where they are due; others lose nothing.
// - Where a task's workspace finds no place, a defragmentation makes one, and the algorithm is
//   chosen again.
// - Who looks for what to prefetch looks no further than kFurthest tasks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "planners/published/modnn/stage.h"

namespace tidepool::modnn {

struct SchedulerOptions {
  StageOptions stage;
  /// One per op: what runs, unless algorithms may be chosen.
  std::vector<std::int32_t> algorithms;
  bool choose_algorithms = true;
  Stop stop{};
};

struct DataSchedule {
  std::vector<StagedItem> items;
  std::vector<Decision> decisions;       ///< per gap
  std::vector<std::int32_t> algorithms;  ///< per op
  std::vector<Bytes> stays_at;           ///< per tensor: its address if it stays, or -1
  int defragmentations = 0;
  Nanos end{};  ///< of the last task, as the scheduler sees it

  /// Where it ended early, the task that has no place; kNone: it is complete.
  OpId stuck = kNone;
  bool stopped = false;
};

/// All must outlive the call.
DataSchedule schedule_transfers(const Program& program, const AccessIndex& index,
                                const Machine& machine, const SchedulerOptions& options);

}  // namespace tidepool::modnn
