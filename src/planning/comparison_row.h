// ComparisonRow: one planner in one budget.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/spread.h"
#include "base/time.h"
#include "bound/tightest.h"
#include "planning/rounds_of_plan.h"
#include "schedule/schedule.h"

namespace tidepool {

/// One planner in one budget.
struct ComparisonRow {
  std::string planner;
  Bytes budget = 0;
  std::string error;                       ///< why there is no plan; empty when there is one
  ErrorCode code = ErrorCode::infeasible;  ///< of that
  std::optional<Bytes> smallest;  ///< where there is none: a budget with one, resident included
  Bytes resident = 0;             ///< of a trace, beside budget and footprint
  Bytes footprint = 0;
  Nanos time{};
  Nanos unlimited{};            ///< without a budget: one for all rows of the same rounds
  RoundsOfPlan rounds{};        ///< of the plan
  bool covered = false;         ///< the bound holds for such plans
  std::optional<double> least;  ///< overhead that no plan with the usual algorithms avoids
  std::optional<double> gap;
  BoundBy bound_by = BoundBy::fluid;  ///< where there is a gap
  bool bound_stopped = false;         ///< the time limit was up: more time may prove more
  std::string bound_refused;          ///< why there is no bound for such a program
  Bytes swapped = 0;
  std::optional<Bytes> written;  ///< to the machine's file, where it has one
  std::int64_t recomputed = 0;
  Nanos plan_time{};
  std::shared_ptr<const Plan> plan{};  ///< null where there is none
  Nanos measured{};                    ///< of an iteration, at its median; 0: it was not measured
  Nanos least_measured{};
  Nanos most_measured{};
  Spread spread{};
  std::int64_t measured_iterations = 0;
  bool has_room = true;  ///< to be measured in the memory of the process beside the other plans
  bool from_smaller_budget = false;
  bool streaming = false;  ///< nothing the planner decides fits: the streaming schedule

  [[nodiscard]] bool feasible() const { return error.empty(); }
};

}  // namespace tidepool
