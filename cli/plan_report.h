// What `tidepool plan` prints of a plan that was made.
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "lower/plan_file.h"
#include "planning/plan_subject.h"
#include "subject_options.h"

namespace tidepool::cli {

struct PlanArguments {
  SubjectSpec subject;
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
  const SubjectPlan& plan;
  PlanFile file;                  ///< of one device
  std::optional<Bytes> budget{};  ///< this and what follows with the resident bytes; none: no limit
  Bytes peak = 0;
  Bytes footprint = 0;
  std::optional<Bytes> written{};  ///< to the machine's file in an iteration, where it has one
};

/// What is saved: the plan that runs.
PlanFile file_of(const MadePlan& m);

/// One JSON object on stdout.
void print_plan_json(const MadePlan& m);
/// For people.
void print_plan(const MadePlan& m);

}  // namespace tidepool::cli
