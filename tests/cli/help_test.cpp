// Help is made of the records: what it shows, where, and to whom.
#include <sstream>

#include "option_names.h"
#include "planners/settings.h"
#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Cli;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCommands[] = {
    "train",  "plan", "compare", "fit",  "bound",      "analyse", "check",    "simulate",
    "export", "pack", "profile", "info", "allocators", "models",  "machines", "planners"};

/// At the beginning of a line of its own.
std::string shown(const OptionRecord& record) { return "\n  " + cli::option_name(record) + " "; }

TEST_F(Cli, EveryOptionOfEveryPlannerIsInTheWholeHelp) {
  for (const char* command : {"train", "plan", "compare"}) {
    SCOPED_TRACE(command);
    const std::string usual = tidepool({command, "--help"}).out;
    const std::string all = tidepool({command, "--help-all"}).out;
    for (const OptionRecord& record : all_planner_options()) {
      if (record.level == OptionLevel::program) {
        EXPECT_THAT(all, Not(HasSubstr(shown(record))));
        continue;
      }
      EXPECT_THAT(all, HasSubstr(shown(record)));
      EXPECT_THAT(all, HasSubstr(cli::with_option_names(record.help)));
      if (record.level == OptionLevel::advanced) {
        EXPECT_THAT(usual, Not(HasSubstr(shown(record))));
      }
    }
    EXPECT_LT(usual.size(), all.size());
  }
}

/// An option that no table knows is in a section "Options".
TEST_F(Cli, EveryOptionOfEveryCommandHasASection) {
  for (const char* command : kCommands) {
    const std::string help = tidepool({command, "--help-all"}).out;
    EXPECT_THAT(help, AllOf(Not(HasSubstr("\nOptions:")), HasSubstr("\nOutput:"))) << command;
  }
}

TEST_F(Cli, SectionsStandInTheirOrder) {
  const std::string help = tidepool({"plan", "--help-all"}).out;
  std::size_t at = 0;
  for (const char* section :
       {"\nWork:", "\nWork, advanced:", "\nBudget:", "\nBudget, advanced:", "\nPlanner:",
        "\nPlanner, advanced:", "\nFiles:", "\nFiles, advanced:", "\nOutput:"}) {
    const std::size_t found = help.find(section, at);
    ASSERT_NE(found, std::string::npos) << section;
    at = found;
  }
}

TEST_F(Cli, TheWholeHelpCanBeAskedForInFront) {
  EXPECT_EQ(tidepool({"--help-all", "fit"}).out, tidepool({"fit", "--help-all"}).out);
  EXPECT_THAT(tidepool({"--help-all"}).out, HasSubstr("--pso-particles"));
}

/// All of a planner's options together were once a list in `train`.
TEST_F(Cli, APlanFileRefusesTheOptionsOfEveryPlanner) {
  for (const OptionRecord& record : all_planner_options()) {
    if (record.level == OptionLevel::program) continue;
    std::vector<std::string> arguments{"train", "tiny-vgg", "--plan", "x.json",
                                       cli::option_name(record)};
    if (record.type != OptionType::flag) arguments.emplace_back("1");
    expect_error(arguments, 2, AllOf(HasSubstr("--plan"), HasSubstr(arguments[4])));
  }
}

}  // namespace
}  // namespace tidepool
