#include "pack/cycle_sweep.h"

#include <gtest/gtest.h>

#include "pack/holds.h"
#include "pack/validate.h"
#include "pack_problems.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

using testing::usual_or;

void expect_valid(const PackProblem& p, std::uint64_t seed) {
  const Packing packing = pack_by_cycle_sweep(p);
  const auto valid = validate(p, packing);
  ASSERT_TRUE(valid) << "seed " << seed << ": " << valid.error().message;
  EXPECT_GE(packing.footprint, held_at_once(p));
}

TEST(CycleSweep, PacksHoldsOfAllSorts) {
  for (std::uint64_t seed = 0; seed < usual_or<std::uint64_t>(2000, 200); ++seed) {
    expect_valid(testing::random_holds(seed, 40, 60, 50, 20), seed);
  }
}

TEST(CycleSweep, PacksTensOfThousands) {
  const std::size_t buffers = usual_or<std::size_t>(30'000, 3'000);
  expect_valid(testing::random_holds(1, buffers, buffers, 200, 1 << 20), 1);
}

TEST(CycleSweep, WhatIsNotHeldYetLendsItsBytes) {
  PackProblem p;
  p.sizes = {8, 8};
  p.starts = {8, 3};
  p.holds.resize(2);
  p.holds[0].begin = 8;  // until 2 of the next cycle
  p.holds[0].until.fill(12);
  p.holds[0].until_next.fill(2);
  p.holds[1].begin = 3;
  p.holds[1].until.fill(8);
  EXPECT_EQ(pack_by_cycle_sweep(p).footprint, 8);
  p.holds[1].until.fill(9);
  EXPECT_EQ(pack_by_cycle_sweep(p).footprint, 16);
}

TEST(CycleSweep, OneKindMayTakeBytesOverBeforeAnother) {
  PackProblem p;
  p.sizes = {8, 8};
  p.starts = {0, 4};
  p.holds.resize(2);
  p.holds[0].until = {4, 9, 9, 9};
  p.holds[1].begin = 4;
  p.holds[1].until.fill(6);
  EXPECT_EQ(pack_by_cycle_sweep(p).footprint, 8);
  p.holds[1].kind = 1;
  EXPECT_EQ(pack_by_cycle_sweep(p).footprint, 16);
}

}  // namespace
}  // namespace tidepool
