// Libraries name fields; people see options.
#include "option_names.h"

#include <gtest/gtest.h>

namespace tidepool::cli {
namespace {

TEST(OptionNames, FieldsInBackquotesBecomeOptions) {
  EXPECT_EQ(with_option_names("use `planner` tide"), "use --planner tide");
  EXPECT_EQ(with_option_names("`sub_batch` 4 `sub_batch_statistics`"),
            "--sub-batch 4 --sub-batch-statistics");
  EXPECT_EQ(with_option_names("`data` cifar10 needs `data_folder`"),
            "--data cifar10 needs --data-dir");
}

TEST(OptionNames, OtherTextStays) {
  for (const char* text : {"", "plain", "`tidepool machines`", "one ` alone", "``", "`x` `", "`"}) {
    EXPECT_EQ(with_option_names(text), text);
  }
  EXPECT_EQ(with_option_names("it`s `link`"), "it`s --link");
}

}  // namespace
}  // namespace tidepool::cli
