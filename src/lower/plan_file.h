// The plan file: everything needed to prove, simulate, explain and run a plan, in one document.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost/profile.h"
#include "lower/budget.h"
#include "schedule/schedule.h"
#include "schedule/strategy.h"

namespace tidepool {

struct PlanFile {
  std::string fingerprint;  ///< device or machine preset the times are from
  Program program;
  Machine machine;
  Bytes device_budget = 0;
  Bytes host_budget = 0;   ///< 0: no limit
  Nanos iteration_time{};  ///< predicted
  Nanos compute_time{};
  Strategy strategy;
  Plan plan;
  std::map<SpaceId, Bytes> other_budgets{};  ///< Budget::others
  /// Of several devices: the plan of one device's part, of which `plan` is composed. It does not
  /// run; reports say what it does.
  std::optional<Plan> part{};
  bool fake = false;  ///< its times are of a fake profiling, see Profile
  /// Without a budget (overhead.h), with the algorithms that its planner could choose from; none:
  /// of several devices, or of a file that does not say.
  std::optional<Nanos> unlimited{};

  /// That, but no more than with the algorithms that the plan has: what the file says may be of
  /// another version, or edited. For programs on one device.
  [[nodiscard]] Nanos unlimited_time() const;

  [[nodiscard]] Budget budget() const { return {device_budget, host_budget, other_budgets}; }
};

Json to_json(const std::map<SpaceId, Bytes>& other_budgets);
Json to_json(const PlanFile& file);
PlanFile plan_file_from_json(const JsonCursor& json);
/// Errors name `file`, line and field. The plan is not proved: call `check`.
Result<PlanFile> read_plan(std::string_view text, std::string_view file);

}  // namespace tidepool
