// Plan and profile files.
#pragma once

#include <string>

#include "base/file.h"
#include "check/check.h"
#include "cost/profile.h"
#include "lower/plan_file.h"

namespace tidepool {

/// Reads and parses; does not prove.
inline Result<PlanFile> load_plan(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  return read_plan(*text, path);
}

/// The same of a profile.
inline Result<Profile> load_profile_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  return read_profile(*text, path);
}

/// Proves the plan against the budgets, of each space, and the machine that its file names.
inline Result<void> prove(const PlanFile& file) {
  return check(file.program, file.plan, check_limits(file.machine, file.budget()));
}

}  // namespace tidepool
