#include "planners/auto/size_order.h"

#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "support/program_builder.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

std::vector<TriedSize> offered(std::size_t count) {
  std::vector<TriedSize> sizes;
  for (std::size_t i = count; i-- > 0;) sizes.push_back({std::int64_t{1} << i});
  return sizes;
}

void tried(TriedSize& size, Nanos time) {
  size.tried = true;
  size.time = time;
}

/// Tries what is said until nothing is; the order.
std::vector<std::size_t> order(std::vector<TriedSize> sizes, std::size_t guess,
                               const std::vector<Nanos::rep>& times) {
  std::vector<std::size_t> tries;
  while (const auto next = next_size(sizes, guess)) {
    EXPECT_FALSE(sizes.at(*next).tried);
    tries.push_back(*next);
    tried(sizes[*next], Nanos{times[*next]});
    if (tries.size() > sizes.size()) break;
  }
  return tries;
}

constexpr Nanos::rep kNever = Nanos::max().count();

TEST(NextSize, BeginsWithTheGuessAndEndsWithTheBestAmongNeighbours) {
  auto sizes = offered(8);
  tried(sizes[0], Nanos{50});
  const std::vector<Nanos::rep> times{50, 40, 30, 20, 25, 35, 45, 55};
  const auto tries = order(sizes, 5, times);
  EXPECT_EQ(tries.front(), 5U);
  EXPECT_NE(std::find(tries.begin(), tries.end(), 3U), tries.end());
  EXPECT_LT(tries.size(), 7U) << "not all";
}

TEST(NextSize, GoesToSmallerOnesWhileNothingFits) {
  auto sizes = offered(8);
  tried(sizes[0], Nanos::max());
  const std::vector<Nanos::rep> times{kNever, kNever, kNever, kNever, kNever, kNever, kNever, 9};
  const auto tries = order(sizes, 2, times);
  EXPECT_NE(std::find(tries.begin(), tries.end(), 7U), tries.end());
  EXPECT_LE(tries.size(), 4U);
}

TEST(NextSize, EndsWhereNothingFitsAtAll) {
  auto sizes = offered(4);
  tried(sizes[0], Nanos::max());
  EXPECT_LE(order(sizes, 1, {kNever, kNever, kNever, kNever}).size(), 3U);
}

TEST(NextSize, FindsTheBestOfEveryCurveWithOneMinimum) {
  for (std::size_t minimum = 0; minimum < 8; ++minimum) {
    for (std::size_t guess = 1; guess < 8; ++guess) {
      std::vector<Nanos::rep> times;
      for (std::size_t i = 0; i < 8; ++i) {
        times.push_back(100 + static_cast<Nanos::rep>(i > minimum ? i - minimum : minimum - i));
      }
      auto sizes = offered(8);
      tried(sizes[0], Nanos{times[0]});
      const auto tries = order(sizes, guess, times);
      const bool found =
          minimum == 0 || std::find(tries.begin(), tries.end(), minimum) != tries.end();
      EXPECT_TRUE(found) << minimum << " from " << guess;
    }
  }
}

TEST(SizeThatFits, IsTheLargestWhoseLoadShouldBeWithinTheBudget) {
  testing::SubBatchWorkload workload;
  std::vector<TriedSize> sizes;
  for (const std::int64_t size : workload.sub_batches()) sizes.push_back({size});
  const Lowering whole(**workload.program(8), testing::byte_a_nanosecond(64));
  std::vector<Bytes> peaks;
  for (const TriedSize& size : sizes) {
    const Program& program = **workload.program(size.sub_batch);
    const AccessIndex index(program);
    peaks.push_back(load_profile(program, index, 64, least_workspace_algorithms(program)).peak);
  }
  // A little more than what is estimated is needed for sums of gradients.
  EXPECT_EQ(size_that_fits(sizes, whole, peaks[0]), 0U);
  EXPECT_EQ(size_that_fits(sizes, whole, peaks[1] + 1024), 1U);
  EXPECT_EQ(size_that_fits(sizes, whole, peaks[2] + 1024), 2U);
  EXPECT_EQ(size_that_fits(sizes, whole, 1), 3U);
}

}  // namespace
}  // namespace tidepool
