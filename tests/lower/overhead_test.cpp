#include "lower/overhead.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/load_profile.h"
#include "lower/lower.h"
#include "support/odd_program.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

using enum AccessMode;
using testing::byte_a_nanosecond;

TEST(Overhead, IsTheShareOfTheTimeWithoutABudget) {
  EXPECT_EQ(overhead(Nanos{150}, Nanos{100}), 0.5);
  EXPECT_EQ(overhead(Nanos{0}, Nanos{0}), 0);
  EXPECT_TRUE(std::isinf(overhead(Nanos{1}, Nanos{0}))) << "no proof from a missing figure";
}

/// Regression: -17.6 % were shown beside a proof that no plan has less than 0 %.
TEST(MeasuredOverhead, SaysWhatTheSpreadLeavesOpen) {
  const Spread quiet{Nanos{1000}, Nanos{995}, Nanos{1005}, 20};
  const Spread slower{Nanos{1100}, Nanos{1090}, Nanos{1110}, 24};
  const MeasuredShare clear = measured_overhead(slower, quiet);
  EXPECT_EQ(clear.noise(), "");
  EXPECT_EQ(clear.text(), "10.0 % (8.5 to 11.6)");
  EXPECT_EQ(clear.count, 20U);
  const Spread noisy{Nanos{824}, Nanos{600}, Nanos{1200}, 20};
  const MeasuredShare busy = measured_overhead(noisy, quiet);
  EXPECT_EQ(busy.noise(), "busy machine");
  EXPECT_EQ(busy.text(), "-17.6 % (-40.3 to 20.6: busy machine)");
  const Spread same{Nanos{1000}, Nanos{996}, Nanos{1004}, 20};
  EXPECT_EQ(measured_overhead(same, same).noise(), "") << "as quiet as machines are";
}

TEST(MeasuredOverhead, OfTooFewIterationsSaysSo) {
  const Spread one{Nanos{1000}, Nanos{1000}, Nanos{1000}, 1};
  EXPECT_EQ(measured_overhead({Nanos{8720}, Nanos{8720}, Nanos{8720}, 1}, one).text(),
            "772.0 % (of 1: too few to tell it from noise)");
  EXPECT_EQ(measured_error(Nanos{1100}, {Nanos{1000}, Nanos{1000}, Nanos{1000}, 9}).text(),
            "10.0 % (10.0 to 10.0)");
}

TEST(UnlimitedTime, IsThatOfWhatTakesLongest) {
  testing::ProgramBuilder b;
  const TensorId input = b.tensor("input", 512);
  const TensorId y = b.tensor("y", 64);
  b.host("feed", {{input, write}});
  b.device("first", {{input, read}, {y, write}}, Nanos{300});
  b.device("second", {{input, read}, {y, update}}, Nanos{100});
  const Program program = b.build();
  const std::vector<std::int32_t> algorithms(3, 0);
  EXPECT_EQ(unlimited_time(program, byte_a_nanosecond(64), algorithms), Nanos{512})
      << "one copy of the input, however often it is read";
  Machine fast = byte_a_nanosecond(64);
  fast.set_links({1e12, Nanos{0}}, {1e12, Nanos{0}});
  EXPECT_EQ(unlimited_time(program, fast, algorithms), Nanos{400}) << "the ops, one after another";
}

/// No budget costs less than nothing, by definition: random programs with all the memory they could
/// use, by any strategy, with host ops, releases, ops of no time and links that take turns.
TEST(UnlimitedTime, NoPlanIsFaster) {
  for (std::uint64_t seed = 0; seed < testing::usual_or(400U, 80U); ++seed) {
    SCOPED_TRACE(seed);
    const Program program =
        seed % 3 == 0 ? testing::random_program(seed)
                      : testing::odd_program(seed, testing::HostUse::plain, {7, 25, seed % 3 == 1});
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const Strategy strategy = testing::random_strategy(program, lowering.index(),
                                                       static_cast<double>(seed % 4) / 4, seed);
    const auto lowered = lowering.lower(strategy, {kNoDeviceLimit, 0});
    if (!lowered) continue;
    EXPECT_GE(lowered->iteration_time,
              unlimited_time(program, machine, lowered->strategy.algorithms));
  }
}

}  // namespace
}  // namespace tidepool
