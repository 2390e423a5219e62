#include "nn/state_store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/process.h"

namespace tidepool::nn {
namespace {

class StateStores : public ::testing::TestWithParam<bool> {
 protected:
  StateStores() {
    if (GetParam()) {
      EXPECT_TRUE(store_.use_folder(folder_.path()));
    }
  }
  const tidepool::testing::TemporaryFolder folder_;
  StateStore store_{{3, 0, 5000}};
};

std::vector<std::byte> filled(std::size_t count, int value) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

TEST_P(StateStores, GivesBackWhatItWasGiven) {
  EXPECT_FALSE(store_.has(0));
  store_.write(0, 0, filled(3, 1));
  store_.write(2, 0, filled(4000, 2));
  store_.write(2, 4000, filled(1000, 3));
  store_.write(0, 1, filled(1, 9));
  EXPECT_TRUE(store_.has(0));
  EXPECT_FALSE(store_.has(1));
  std::vector<std::byte> first(3), part(2000);
  store_.read(0, 0, first);
  EXPECT_EQ(first, (std::vector{std::byte{1}, std::byte{9}, std::byte{1}}));
  store_.read(2, 3000, part);
  EXPECT_EQ(part[999], std::byte{2});
  EXPECT_EQ(part[1000], std::byte{3});
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "the file has no name";
}

TEST_P(StateStores, OnlyMemoryIsReleased) {
  store_.write(0, 0, filled(3, 1));
  store_.release(0);
  EXPECT_EQ(store_.has(0), GetParam());
}

INSTANTIATE_TEST_SUITE_P(, StateStores, ::testing::Bool(), [](const auto& test) {
  return test.param ? std::string("InAFile") : std::string("InMemory");
});

TEST(StateStore, AFolderThatCannotBeUsedIsAnError) {
  StateStore store({1});
  EXPECT_FALSE(store.use_folder("/nonexistent"));
}

}  // namespace
}  // namespace tidepool::nn
