// SavedPlan: the plan of a file, read once, for jobs of this device.
#pragma once

#include <string>

#include "lower/plan_file.h"
#include "planning/obtain_plan.h"
#include "planning/subject.h"

namespace tidepool {

struct SavedPlan {
  std::string path;  ///< for messages
  PlanFile file;
  Nanos read_time{};  ///< what reading it took
};

/// Reads and parses; does not prove.
Result<SavedPlan> read_saved_plan(const std::string& path);

/// What a saved plan has to be of to run here.
struct RunsHere {
  std::string fingerprint;
  std::int32_t devices = 1;
  bool file_tier = false;  ///< a file behind the host
  bool spills = false;     ///< a file behind memory
  const Program& program;  ///< of all devices; times do not matter
};

/// Refuses a plan of another device, program, number of devices, or place for what leaves memory.
Result<void> check_runs_here(const SavedPlan& saved, const RunsHere& here);

/// The budget of the file, where none is given.
BudgetSpec budget_of_plan(const BudgetSpec& given, const SavedPlan& saved);

/// The plan as one of the subject's: refused when it is of another device or program; `infeasible`
/// when it needs more than the budget. It is proved against the machine here, on which it runs, and
/// that of the file, on which it is timed with the op times that the file names.
Result<ObtainedPlan> plan_of_file(const SavedPlan& saved, const Profile& subject,
                                  const Budget& budget);

/// What runs on several devices, and the plan of one device's part that it is composed of.
struct ObtainedParallelPlan {
  ObtainedPlan part;
  ParallelPlan whole;
};

/// The same of a subject with several devices. Nothing is composed: the file's plan is proved and
/// runs as it is.
Result<ObtainedParallelPlan> parallel_plan_of_file(const SavedPlan& saved, const Subject& subject,
                                                   const Budget& budget);

}  // namespace tidepool
