#include "record_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "option_names.h"
#include "planners/settings.h"

namespace tidepool::cli {
namespace {

bool names_a_file(const OptionRecord& record) {
  return record.type == OptionType::input_file || record.type == OptionType::output_file;
}

std::string type_name(const OptionRecord& record) {
  if (!record.form.empty()) return std::string(record.form);
  switch (record.type) {
    case OptionType::flag:
      return {};
    case OptionType::whole_number:
      return "N";
    case OptionType::number:
      return "NUMBER";
    case OptionType::text:
      return "TEXT";
    case OptionType::choice:
      return fmt::format("{}", fmt::join(record.choices, "|"));
    case OptionType::duration:
      return "DURATION";
    case OptionType::size:
      return "SIZE";
    case OptionType::input_file:
    case OptionType::output_file:
      return "FILE";
  }
  return {};
}

void add_planner_record(CLI::App& command, const OptionRecord& record, OptionValues& values) {
  const std::string help =
      fmt::format("{}: {}", fmt::join(readers_of(record.name), ", "), help_of(record));
  add_record_option(command, record, help, [&record, &values](OptionValue value) {
    values.set(record.name, std::move(value));
  });
}

void add_planner_records_if(CLI::App& command, PlannerSpec& planner, bool files) {
  for (const OptionRecord& record : all_planner_options()) {
    if (record.level == OptionLevel::program || names_a_file(record) != files) continue;
    add_planner_record(command, record, planner.values);
  }
}

}  // namespace

std::string help_of(const OptionRecord& record) {
  std::string help = with_option_names(record.help);
  if (!record.usual.empty()) help += fmt::format(" (default: {})", record.usual);
  return help;
}

CLI::Option* add_record_option(CLI::App& command, const OptionRecord& record,
                               const std::string& help, std::function<void(OptionValue)> set) {
  if (record.type == OptionType::flag) {
    return command.add_flag_callback(
        option_name(record), [set = std::move(set)] { set(true); }, help);
  }
  const auto parse = [&record, set = std::move(set)](const std::string& text) {
    auto value = parse_option(record, text);
    if (!value) throw CLI::ValidationError(value.error().message);
    set(std::move(*value));
  };
  return command.add_option_function<std::string>(option_name(record), parse, help)
      ->type_name(type_name(record));
}

void add_planner_records(CLI::App& command, PlannerSpec& planner) {
  add_planner_records_if(command, planner, false);
}

void add_planner_files(CLI::App& command, PlannerSpec& planner) {
  add_planner_records_if(command, planner, true);
}

}  // namespace tidepool::cli
