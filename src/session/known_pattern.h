// A pattern that was planned, and one whose plan is being made. Inside of session.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "session/plan_pattern.h"
#include "session/planned_run.h"
#include "session/session.h"

namespace tidepool {

/// A pattern with its plan.
struct Session::Known {
  Pattern pattern;
  PatternPlan plan;
  std::shared_ptr<const PlanFile> file;
  std::unique_ptr<PlannedRun> run{};
  std::vector<char> runs_again{};     ///< by op: whether the plan runs it more than once
  std::vector<std::size_t> phases{};  ///< steps that the last calls may be
  /// Steps that the last calls are, behind a whole iteration; none: that is not known.
  std::optional<std::size_t> phase{};
};

/// A plan that is being made, on a thread of its own or on the caller's.
struct Session::Planning {
  Pattern pattern;
  std::atomic<bool> stop{false};
  std::atomic<bool> done{false};
  std::optional<Result<PatternPlan>> plan{};
  std::thread thread{};

  explicit Planning(Pattern made) : pattern(std::move(made)) {}
  ~Planning() {
    stop = true;
    if (thread.joinable()) thread.join();
  }
  void run(const Machine& machine, const Budget& budget, const PlannerSpec& planner,
           std::uint64_t seed, const Stop& asked) {
    plan = plan_pattern(pattern.program, machine, budget, planner, seed,
                        [&] { return stop.load() || asked.requested(); });
    done = true;
  }
};

}  // namespace tidepool
