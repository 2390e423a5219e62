#pragma once

#include "base/file.h"
#include "lower/plan_file.h"

namespace tidepool {

/// Reads and parses; does not prove.
inline Result<PlanFile> load_plan(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  return read_plan(*text, path);
}

}  // namespace tidepool
