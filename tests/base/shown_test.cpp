#include "base/shown.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

TEST(Shown, IsShortAndText) {
  EXPECT_EQ(shown("a\x01\xff"), "a??");
  EXPECT_EQ(shown(std::string(40, 'x')), std::string(40, 'x'));
  EXPECT_EQ(shown(std::string(41, 'x')), std::string(40, 'x') + "...");
}

}  // namespace
}  // namespace tidepool
