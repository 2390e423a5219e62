#include "base/counted.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tidepool {
namespace {

TEST(Counted, OneIsSingularAndAllElseIsPlural) {
  EXPECT_EQ(counted(0, "tensor"), "0 tensors");
  EXPECT_EQ(counted(1, "tensor"), "1 tensor");
  EXPECT_EQ(counted(std::size_t{2}, "tensor"), "2 tensors");
  EXPECT_EQ(counted(std::int64_t{1'000'000}, "op"), "1000000 ops");
}

}  // namespace
}  // namespace tidepool
