#include "base/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace tidepool {
namespace {

constexpr std::array<std::string_view, 4> kNames{"train", "trace", "plan", "planners"};

TEST(EditDistance, CountsWhatIsTypedWrong) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("plan", "plan"), 0U);
  EXPECT_EQ(edit_distance("paln", "plan"), 1U) << "neighbours exchanged";
  EXPECT_EQ(edit_distance("plans", "plan"), 1U);
  EXPECT_EQ(edit_distance("plan", "planners"), 4U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(EditDistance, IsTheSameBothWays) {
  EXPECT_EQ(edit_distance("budget", "bugdte"), edit_distance("bugdte", "budget"));
}

TEST(Nearest, IsWhatWasMeantOrNothing) {
  EXPECT_EQ(nearest("trian", kNames), "train");
  EXPECT_EQ(nearest("plam", kNames), "plan");
  EXPECT_EQ(nearest("planer", kNames), "plan") << "the nearest, not the longest";
  EXPECT_EQ(nearest("fly", kNames), "");
  EXPECT_EQ(nearest("", kNames), "");
  EXPECT_EQ(nearest("plan", {}), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), kNames), "");
}

TEST(Nearest, ErrorsNameItAndAllThereAre) {
  EXPECT_EQ(
      unknown_name("command", "trian", kNames).message,
      "unknown command 'trian'; did you mean 'train'? There are: train, trace, plan, planners");
  EXPECT_EQ(unknown_name("command", "fly", kNames).message,
            "unknown command 'fly'; there are: train, trace, plan, planners");
  EXPECT_EQ(unknown_name("command", "fly", kNames).code, ErrorCode::usage);
}

}  // namespace
}  // namespace tidepool
