// What `tidepool plan` prints of a plan that was made.
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "lower/plan_file.h"
#include "planning/obtain_plan.h"
#include "planning/parallel_plan.h"
#include "planning/planning_spec.h"
#include "planning/proven_gap.h"
#include "rounds_report.h"
#include "subject.h"
#include "train/training_spec.h"

namespace tidepool::cli {

struct PlanArguments {
  SubjectArguments subject;
  BudgetSpec budget;
  PlannerSpec planner;
  std::string output;
  bool explain = false;
  std::int32_t host_cores = 1;
};

/// A plan that was made, and what people want to know of it.
struct MadePlan {
  const PlanArguments& arguments;
  const Subject& subject;
  const ObtainedPlan& obtained;
  PlanFile file;
  Nanos unlimited{};              ///< an iteration without a budget
  double overhead = 0;            ///< over that
  std::optional<Bytes> budget{};  ///< this and what follows with the resident bytes; none: no limit
  Bytes peak = 0;
  Bytes footprint = 0;
  std::optional<Bytes> written{};  ///< to the machine's file in an iteration, where it has one
  bool stopped = false;            ///< the best until then
  RoundsReport rounds{};
  ProvenGap gap{};
  std::optional<ParallelPlan> parallel{};  ///< of all devices; the rest is of one
};

/// What is saved: the plan that runs.
PlanFile file_of(const MadePlan& m);

/// One JSON object on stdout.
void print_plan_json(const MadePlan& m);
/// For people.
void print_plan(const MadePlan& m);

}  // namespace tidepool::cli
