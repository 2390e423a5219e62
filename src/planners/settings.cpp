#include "planners/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/nearest.h"
#include "base/random.h"

namespace tidepool {
namespace {

bool has_option(std::span<const OptionRecord> records, std::string_view option) {
  return std::ranges::find(records, option, &OptionRecord::name) != records.end();
}

std::string quoted(std::span<const std::string_view> names) {
  std::string text = names.size() > 1 ? "planners " : "planner ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    text += fmt::format("{}'{}'", i == 0 ? "" : last ? " and " : ", ", names[i]);
  }
  return text;
}

Error not_read(std::string_view option, std::span<const std::string> planners) {
  std::vector<std::string_view> readers;
  for (const PlannerInfo& info : planner_list()) {
    if (has_option(info.options, option)) readers.push_back(info.name);
  }
  constexpr std::size_t kMostNamed = 3;
  const std::string named = planners.size() > kMostNamed
                                ? fmt::format("any of these {}", planners.size())
                                : fmt::format("'{}'", fmt::join(planners, ", "));
  if (!readers.empty()) {
    return {ErrorCode::usage,
            fmt::format("`{}` is for {}, not for {}", option, quoted(readers), named),
            {}};
  }
  for (const MissingPlanner& missing : missing_planners()) {
    if (has_option(missing.options, option)) {
      return {ErrorCode::usage,
              fmt::format("`{}` needs {}, which this build goes without: it was made without "
                          "Debian's {}",
                          option, quoted(readers_of(option)), missing.package),
              {}};
    }
  }
  return {ErrorCode::usage, fmt::format("no planner has an option `{}`", option), {}};
}

Result<std::pair<const OptionRecord*, OptionValue>> parse_setting(std::string_view planner,
                                                                  std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    return fail(ErrorCode::usage, fmt::format("'{}' is not NAME=VALUE", line));
  }
  const std::string_view name = line.substr(0, equals);
  const OptionRecord* const record = find_planner_option(name);
  if (record == nullptr) {
    std::vector<std::string_view> names;
    for (const OptionRecord& each : all_planner_options()) {
      if (reads(planner, each.name)) names.push_back(each.name);
    }
    if (names.empty()) {
      return fail(ErrorCode::usage,
                  fmt::format("planner '{}' has no options, none called '{}'", planner, name));
    }
    return fail(unknown_name("option", name, names));
  }
  if (!reads(planner, name)) return fail(not_read(name, std::vector{std::string(planner)}));
  auto value = parse_option(*record, line.substr(equals + 1));
  if (!value) return fail(value.error());
  return std::pair(record, std::move(*value));
}

}  // namespace

std::span<const OptionRecord> all_planner_options() {
  static const std::vector<OptionRecord> kAll = [] {
    std::vector<OptionRecord> all;
    const auto add = [&all](std::span<const OptionRecord> records) {
      for (const OptionRecord& record : records) {
        if (!has_option(all, record.name)) all.push_back(record);
      }
    };
    for (const PlannerInfo& info : planner_list()) add(info.options);
    for (const MissingPlanner& missing : missing_planners()) add(missing.options);
    return all;
  }();
  return kAll;
}

const OptionRecord* find_planner_option(std::string_view name) {
  const auto all = all_planner_options();
  const auto found = std::ranges::find(all, name, &OptionRecord::name);
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string_view> readers_of(std::string_view option) {
  std::vector<std::string_view> readers;
  for (const PlannerInfo& info : planner_list()) {
    if (has_option(info.options, option)) readers.push_back(info.name);
  }
  for (const MissingPlanner& missing : missing_planners()) {
    if (has_option(missing.options, option)) readers.push_back(missing.name);
  }
  return readers;
}

bool reads(std::string_view planner, std::string_view option) {
  return std::ranges::any_of(planner_list(), [&](const PlannerInfo& info) {
    return info.name == planner && has_option(info.options, option);
  });
}

Result<OptionValues> parse_settings(std::string_view planner, std::string_view text) {
  if (auto known = make_planner(planner); !known) return fail(known.error());
  OptionValues values;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    auto setting = parse_setting(planner, line);
    if (!setting) {
      return fail(setting.error().code,
                  fmt::format("line {}: {}", number, setting.error().message));
    }
    values.set(setting->first->name, std::move(setting->second));
  }
  if (auto sound = check_read_by(std::vector{std::string(planner)}, values); !sound) {
    return fail(sound.error());
  }
  return values;
}

Result<void> check_read_by(std::span<const std::string> planners, const OptionValues& values) {
  // In the order of the records: of several the first one is named.
  for (const OptionRecord& record : all_planner_options()) {
    const bool read = std::ranges::any_of(
        planners, [&](const std::string& planner) { return reads(planner, record.name); });
    if (values.has(record.name) && !read) return fail(not_read(record.name, planners));
  }
  for (const auto& [name, value] : values) {
    if (find_planner_option(name) == nullptr) return fail(not_read(name, planners));
  }
  for (const PlannerInfo& info : planner_list()) {
    const bool asked = std::ranges::find(planners, info.name) != planners.end();
    if (!asked || info.check == nullptr) continue;
    if (auto sound = info.check(values); !sound) return sound;
  }
  return {};
}

std::string identity_of(const OptionValues& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    const OptionRecord* const record = find_planner_option(name);
    std::string shown = to_text(value);
    if (record != nullptr && record->type == OptionType::input_file) {
      std::uint64_t hash = 0;
      for (const char c : shown) hash = hash_combine(hash, static_cast<unsigned char>(c));
      shown = fmt::format("{:016x}", hash);
    }
    // Its length comes first: a text may look like several values.
    text += fmt::format("{}{}={} {}", text.empty() ? "" : "\n", name, shown.size(), shown);
  }
  return text;
}

std::vector<std::string> files_of(const OptionValues& values, OptionType type) {
  std::vector<std::string> files;
  for (const OptionRecord& record : all_planner_options()) {
    if (record.type == type && values.has(record.name)) files.push_back(values.text(record.name));
  }
  return files;
}

OptionValues without_files(OptionValues values) {
  for (const OptionRecord& record : all_planner_options()) {
    const bool file =
        record.type == OptionType::input_file || record.type == OptionType::output_file;
    if (file) values.erase(record.name);
  }
  return values;
}

Result<void> read_input_files(const OptionValues& stated, OptionValues& values) {
  for (const OptionRecord& record : all_planner_options()) {
    if (record.type != OptionType::input_file || !stated.has(record.name)) continue;
    const std::string path = stated.text(record.name);
    auto content = read_file(path, static_cast<std::size_t>(record.most));
    if (!content) return fail(content.error());
    if (record.sound != nullptr) {
      if (auto sound = record.sound(*content); !sound) {
        return fail(sound.error().code, fmt::format("{}: {}", path, sound.error().message));
      }
    }
    values.set(record.name, std::move(*content));
  }
  return {};
}

}  // namespace tidepool
