// The options that say what to plan for.
#pragma once

#include <vector>

#include "cli11_fwd.h"
#include "measure/subject_of.h"
#include "spec_options.h"

namespace tidepool::cli {

/// Adds model, device, preset and profile options to a subcommand.
void add_subject_options(CLI::App& command, SubjectSpec& spec);
/// What has no effect beside the options of subjects, for `refuse_ignored`.
std::vector<Ignored> ignored_by_subjects();

}  // namespace tidepool::cli
