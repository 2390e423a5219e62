// Values of the planners' own options, over the records of all planners: those that this build goes
// without too, as messages and help name them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/option.h"
#include "planners/registry.h"

namespace tidepool {

/// Of each option of any planner one record, in the order of the planners.
std::span<const OptionRecord> all_planner_options();
/// Null: no planner has it.
const OptionRecord* find_planner_option(std::string_view name);
/// The planners that read an option, those last that this build goes without.
std::vector<std::string_view> readers_of(std::string_view option);
/// Whether a planner of this build reads an option.
bool reads(std::string_view planner, std::string_view option);

/// Lines "name=value"; empty lines, and those that begin with '#', mean nothing. Fails with a usage
/// error that names the line where a planner does not read an option or its value is none.
Result<OptionValues> parse_settings(std::string_view planner, std::string_view text);

/// Fails with a usage error where something is set that none of the planners reads, and where what
/// one of them reads makes no sense together.
Result<void> check_read_by(std::span<const std::string> planners, const OptionValues& values);

/// All values in words for comparisons: equal texts, equal values. Contents of files by their hash.
std::string identity_of(const OptionValues& values);

// Files. Until the work begins a value is the file's path; planners get contents.
/// Paths that are stated for files of this type.
std::vector<std::string> files_of(const OptionValues& values, OptionType type);
/// The values without files.
OptionValues without_files(OptionValues values);
/// Reads the files that `stated` names into `values`. Fails where one cannot be read, or is not
/// what its option takes.
Result<void> read_input_files(const OptionValues& stated, OptionValues& values);

}  // namespace tidepool
