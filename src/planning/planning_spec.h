// What a plan is asked for with: budget, planner, cache. Plain data. Messages of the library name
// the fields of these structs in backquotes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/quantity.h"
#include "lower/budget.h"
#include "planners/planner_context.h"

namespace tidepool {

/// RAM of the whole process: code, heap, inputs and the arenas of device and host.
struct MemorySpec {
  Bytes bytes = 0;
  bool automatic = false;  ///< what the control group allows, else what the machine has left

  [[nodiscard]] bool given() const { return automatic || bytes > 0; }
};

struct BudgetSpec {
  /// Percentages are of the unlimited peak load with least-workspace algorithms: it is computed,
  /// nothing runs without a budget to find it. At 100 % there is no room for gaps between
  /// addresses. Unless it is given there is no limit, or that of a plan file.
  SizeOrPercent device{.bytes = kNoDeviceLimit};
  Bytes host = 0;       ///< `host_budget`, for what leaves the device; 0: no limit
  MemorySpec memory{};  ///< the device's bytes are what this leaves

  /// Of the device's bytes.
  [[nodiscard]] bool limited() const {
    return device.percent >= 0 || device.bytes < kNoDeviceLimit;
  }
};

inline constexpr Nanos kGapTimeLimit = std::chrono::seconds(10);

struct PlannerSpec {
  std::string name = "auto";
  /// For searches, and once more for the optimality gap. Unset: each planner's own, and
  /// kGapTimeLimit.
  std::optional<Nanos> time_limit;
  /// Searches end after so many evaluations of strategies instead: the same plan on any machine.
  /// 0: the time limit holds.
  std::int64_t evaluations = 0;
  OptionValues values{};  ///< of the planner's own options, see PlannerInfo::options
};

/// What is stated of a subject's ops and rounds, and what of it is left to planners.
struct PlanTerms {
  AlgorithmPolicy algorithms = AlgorithmPolicy::least_workspace;  ///< of ops that have several
  bool choose_algorithms = false;  ///< planners that choose them do so, by times
  bool choose_sub_batch = false;   ///< the same of rounds
  std::uint64_t seed = 1;
  bool swap = true;  ///< planners may; else they recompute or keep
  bool recompute = true;

  /// With which a time without a budget is one that no plan beats by algorithms alone: the fastest
  /// where its planner is one that chooses them (`chooses`) and is asked to, else those of the
  /// policy.
  [[nodiscard]] AlgorithmPolicy best_algorithms(bool chooses) const {
    return choose_algorithms && chooses ? AlgorithmPolicy::fastest : algorithms;
  }
  /// Whether plans may run others than those of least workspace: then all have to be measured.
  [[nodiscard]] bool plans_all_algorithms(bool chooses) const {
    return best_algorithms(chooses) != AlgorithmPolicy::least_workspace;
  }
};

/// What a planner is told.
PlannerOptions planner_options(const PlanTerms& terms, const PlannerSpec& planner);

/// Profiles and plans kept between runs, in `cache_folder()`.
struct CacheSpec {
  bool off = false;
  bool reprofile = false;  ///< measure although the cache has a profile, and replace it
  bool replan = false;
};

/// How long the optimality gap of its plan may take.
inline Nanos gap_time_limit(const PlannerSpec& planner) {
  return planner.time_limit.value_or(kGapTimeLimit);
}

}  // namespace tidepool
