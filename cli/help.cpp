#include "help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "option_names.h"

namespace tidepool::cli {
namespace {

/// In the order of OptionGroup.
constexpr std::array kTitles{"Work", "Budget", "Planner", "Files", "Output"};

std::string title(OptionGroup group) { return kTitles.at(static_cast<std::size_t>(group)); }
std::string advanced_title(OptionGroup group) { return title(group) + ", advanced"; }

class GroupedHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return make_expanded(app);
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           sections(*app, mode == CLI::AppFormatMode::All) + make_subcommands(app, mode) + '\n' +
           make_footer(app);
  }

 private:
  /// In their order, and before them what belongs to none.
  [[nodiscard]] std::string sections(const CLI::App& app, bool all) const {
    std::string text;
    const auto add = [&](const std::string& group) {
      const auto options = app.get_options([&](const CLI::Option* option) {
        return option->get_group() == group && option->nonpositional();
      });
      if (!options.empty()) text += make_group(group, false, options);
    };
    add("Options");
    for (std::size_t i = 0; i < kTitles.size(); ++i) {
      const auto group = static_cast<OptionGroup>(i);
      add(title(group));
      if (all) add(advanced_title(group));
    }
    return text;
  }
};

/// Where help shows an option; by the first of its names that is known.
std::optional<OptionPlace> place_of(const CLI::Option& option) {
  for (const std::string& name : option.get_lnames()) {
    if (const auto place = option_place(name)) return place;
  }
  return std::nullopt;
}

}  // namespace

void begin_help(CLI::App& app) {
  app.formatter(std::make_shared<GroupedHelp>());
  app.set_help_all_flag("--help-all", "the advanced options too");
}

void group_options(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      const auto place = place_of(*option);
      if (!place || !option->nonpositional()) continue;
      const bool advanced = place->level == OptionLevel::advanced;
      option->group(advanced ? advanced_title(place->group) : title(place->group));
    }
  }
}

}  // namespace tidepool::cli
