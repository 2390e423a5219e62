// Options of commands made of records (base/option.h).
#pragma once

#include <functional>
#include <string>

#include "base/option.h"
#include "cli11_fwd.h"
#include "planning/planning_options.h"
#include "planning/planning_spec.h"

namespace tidepool::cli {

/// What the record says, with the options of this program and the usual value.
std::string help_of(const OptionRecord& record);

/// `set` is called with the value where the option is given; what is no value is a usage error that
/// names the option.
CLI::Option* add_record_option(CLI::App& command, const OptionRecord& record,
                               const std::string& help, std::function<void(OptionValue)> set);

/// The option sets its field of `spec`.
template <class Spec>
CLI::Option* add_option_of(CLI::App& command, const OptionOf<Spec>& option, Spec& spec) {
  const auto set = [&spec, &option](const OptionValue& value) { option.set(spec, value); };
  return add_record_option(command, option.record, help_of(option.record), set);
}

/// Those of all planners into the values, but files: their help begins with who reads them.
void add_planner_records(CLI::App& command, PlannerSpec& planner);
/// Those that name files, for commands that read and write them.
void add_planner_files(CLI::App& command, PlannerSpec& planner);

}  // namespace tidepool::cli
