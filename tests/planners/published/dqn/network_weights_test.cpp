#include "planners/published/dqn/network_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tidepool::dqn {
namespace {

using ::testing::HasSubstr;

std::string message(const std::string& bytes) {
  const auto read = read_network(bytes);
  return read ? "" : read.error().message;
}

TEST(NetworkWeights, AreReadAsTheyWereWritten) {
  const NetworkWeights weights = initial_weights(5, 3, 7);
  const auto read = read_network(write_network(weights));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->width, 5);
  EXPECT_EQ(read->hops, 3);
  EXPECT_EQ(read->matrices, weights.matrices);
  EXPECT_EQ(write_network(*read), write_network(weights));
}

TEST(NetworkWeights, BeginByTheSeed) {
  const auto one = initial_weights(16, 4, 1).matrices;
  EXPECT_EQ(one, initial_weights(16, 4, 1).matrices);
  const auto two = initial_weights(16, 4, 2).matrices;
  const auto shapes = matrix_shapes(16);
  for (std::size_t m = 0; m < one.size(); ++m) {
    EXPECT_NE(one[m], two[m]) << "W" << m + 1;
    EXPECT_EQ(one[m].size(), static_cast<std::size_t>(shapes[m].first * shapes[m].second));
    EXPECT_NE(*std::ranges::min_element(one[m]), *std::ranges::max_element(one[m]));
  }
}

TEST(NetworkWeights, RefuseWhatIsNoNetwork) {
  const std::string good = write_network(initial_weights(4, 2, 1));
  EXPECT_THAT(message(""), HasSubstr("begins otherwise"));
  EXPECT_THAT(message("{\"schema\": 1}"), HasSubstr("begins otherwise"));
  EXPECT_THAT(message(good.substr(0, 20)), HasSubstr("ends early"));
  EXPECT_THAT(message(good.substr(0, good.size() - 1)), HasSubstr("bytes instead of"));
  EXPECT_THAT(message(good + "x"), HasSubstr("bytes instead of"));
  const auto with = [&](std::size_t offset, std::int32_t value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + offset, &value, sizeof value);
    return message(bytes);
  };
  EXPECT_THAT(with(16, 2), HasSubstr("form is 2"));
  EXPECT_THAT(with(20, 0), HasSubstr("a width of 0"));
  EXPECT_THAT(with(20, 1 << 30), HasSubstr("a width of"));
  EXPECT_THAT(with(20, 5), HasSubstr("bytes instead of"));
  EXPECT_THAT(with(24, -1), HasSubstr("-1 hops"));
  EXPECT_THAT(with(24, 3), HasSubstr("damaged"));
}

TEST(NetworkWeights, RefuseEveryDamagedByte) {
  const std::string good = write_network(initial_weights(2, 1, 1));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    EXPECT_FALSE(read_network(bytes)) << "byte " << i;
  }
}

TEST(NetworkWeights, RefuseWeightsThatAreNoNumbers) {
  NetworkWeights weights = initial_weights(3, 1, 1);
  weights.matrices[2][1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message(write_network(weights)), HasSubstr("W3 has a weight nan"));
  weights.matrices[2][1] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(message(write_network(weights)), HasSubstr("W3 has a weight inf"));
}

}  // namespace
}  // namespace tidepool::dqn
