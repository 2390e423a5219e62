#include "option_names.h"

#include <algorithm>

#include "job/job_options.h"
#include "planners/settings.h"
#include "planning/planning_options.h"

namespace tidepool::cli {
namespace {

/// Options that are no records: their commands have their texts.
struct Shown {
  std::string_view name;
  OptionPlace place;
};

constexpr OptionPlace kWork{OptionGroup::work, OptionLevel::usual};
constexpr OptionPlace kMoreWork{OptionGroup::work, OptionLevel::advanced};
constexpr OptionPlace kBudget{OptionGroup::budget, OptionLevel::usual};
constexpr OptionPlace kMoreBudget{OptionGroup::budget, OptionLevel::advanced};
constexpr OptionPlace kPlanner{OptionGroup::planner, OptionLevel::usual};
constexpr OptionPlace kMorePlanner{OptionGroup::planner, OptionLevel::advanced};
constexpr OptionPlace kFiles{OptionGroup::files, OptionLevel::usual};
constexpr OptionPlace kMoreFiles{OptionGroup::files, OptionLevel::advanced};
constexpr OptionPlace kOutput{OptionGroup::output, OptionLevel::usual};

constexpr Shown kShown[] = {
    {"algorithm", kPlanner},
    {"baseline", kWork},
    {"checkpoint", kFiles},
    {"epochs", kWork},
    {"explain", kOutput},
    {"fake", kMoreWork},
    {"file-folder", kMoreBudget},
    {"file-limit", kMoreBudget},
    {"file-tier", kBudget},
    {"foreign", kMoreFiles},
    {"graph", kMoreWork},
    {"help", kOutput},
    {"help-all", kOutput},
    {"host-cores", kMoreWork},
    {"iterations", kWork},
    {"json", kOutput},
    {"least", kBudget},
    {"load", kBudget},
    {"machine", kWork},
    {"measure", kWork},
    {"memory", kBudget},
    {"most-batch", kWork},
    {"no-evaluate", kMoreWork},
    {"no-trials", kMorePlanner},
    {"output", kFiles},
    {"overwrite", kFiles},
    {"plan", kFiles},
    {"planners", kPlanner},
    {"plot", kFiles},
    {"profile", kFiles},
    {"program", kFiles},
    {"resident", kMoreBudget},
    {"resolution", kWork},
    {"resume", kFiles},
    {"search-limit", kPlanner},
    {"seed", kWork},
    {"smallest", kBudget},
    {"spec", kFiles},
    {"spill", kBudget},
    {"spill-limit", kMoreBudget},
    {"spill-speed", kMoreBudget},
    {"spill-verify", kMoreBudget},
    {"sweep", kBudget},
    {"to", kOutput},
    {"trace", kFiles},
    {"transparent", kMoreWork},
    {"verify", kWork},
    {"write-spec", kMoreFiles},
};

std::string with_dashes(std::string_view field) {
  std::string name(field);
  std::ranges::replace(name, '_', '-');
  return name;
}

/// Whether that is what the record's option is called. Every start of the program asks it often.
bool is_named(const OptionRecord& record, std::string_view name) {
  if (!record.option.empty()) return record.option == name;
  return std::ranges::equal(record.name, name, [](char of_field, char of_option) {
    return (of_field == '_' ? '-' : of_field) == of_option;
  });
}

/// Null: there is none.
template <class Predicate>
const OptionRecord* find_record(const Predicate& is_it) {
  for (const OptionRecord& record : all_planner_options()) {
    if (is_it(record)) return &record;
  }
  for (const OptionRecord& record : planning_records()) {
    if (is_it(record)) return &record;
  }
  for (const auto options : {job_options(), parallel_options()}) {
    for (const JobOption& option : options) {
      if (is_it(option.record)) return &option.record;
    }
  }
  return nullptr;
}

/// Empty: it is no field.
std::string option_of(std::string_view field) {
  if (const OptionRecord* record =
          find_record([&](const OptionRecord& each) { return each.name == field; })) {
    return option_name(*record);
  }
  // A field has no dashes, and the text around it may be any.
  if (field.find('-') != std::string_view::npos) return {};
  const std::string name = with_dashes(field);
  return std::ranges::find(kShown, name, &Shown::name) == std::ranges::end(kShown) ? std::string()
                                                                                   : "--" + name;
}

}  // namespace

std::string option_name(const OptionRecord& record) {
  return "--" + (record.option.empty() ? with_dashes(record.name) : std::string(record.option));
}

std::optional<OptionPlace> option_place(std::string_view name) {
  if (const OptionRecord* record =
          find_record([&](const OptionRecord& each) { return is_named(each, name); })) {
    return OptionPlace{record->group, record->level};
  }
  const auto* const found = std::ranges::find(kShown, name, &Shown::name);
  if (found == std::ranges::end(kShown)) return std::nullopt;
  return found->place;
}

std::string with_option_names(std::string_view text) {
  std::string named;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('`', at);
    const std::size_t close = open == std::string_view::npos ? open : text.find('`', open + 1);
    if (close == std::string_view::npos) return named.append(text.substr(at));
    named.append(text.substr(at, open - at));
    const std::string option = option_of(text.substr(open + 1, close - open - 1));
    if (option.empty()) {
      named.push_back('`');
      at = open + 1;
    } else {
      named.append(option);
      at = close + 1;
    }
  }
  return named;
}

}  // namespace tidepool::cli
