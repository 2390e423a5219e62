// Libraries name fields; people see options.
#include "option_names.h"

#include <gtest/gtest.h>

#include "planners/settings.h"

namespace tidepool::cli {
namespace {

TEST(OptionNames, FieldsInBackquotesBecomeOptions) {
  EXPECT_EQ(with_option_names("use `planner` tide"), "use --planner tide");
  EXPECT_EQ(with_option_names("`sub_batch` 4 `sub_batch_statistics`"),
            "--sub-batch 4 --sub-batch-statistics");
  EXPECT_EQ(with_option_names("`data` cifar10 needs `data_folder`"),
            "--data cifar10 needs --data-dir");
}

/// Whoever adds an option to a planner names it in no list.
TEST(OptionNames, FieldsOfAllPlannersBecomeOptions) {
  for (const OptionRecord& record : all_planner_options()) {
    EXPECT_EQ(with_option_names("`" + std::string(record.name) + "`"), option_name(record));
  }
  EXPECT_EQ(with_option_names("`profile` x.json"), "--profile x.json");
  EXPECT_EQ(with_option_names("`dqn_rate`"), "--dqn-rate");
}

TEST(OptionNames, OtherTextStays) {
  for (const char* text : {"", "plain", "`tidepool machines`", "one ` alone", "``", "`x` `", "`"}) {
    EXPECT_EQ(with_option_names(text), text);
  }
  EXPECT_EQ(with_option_names("it`s `link`"), "it`s --link");
}

}  // namespace
}  // namespace tidepool::cli
