#include "planners/toolkit/annealing.h"

#include <gtest/gtest.h>

#include <vector>

namespace tidepool {
namespace {

/// As many away as wanted, and those the first ones: single flips find the number, the right ones
/// only exchanges do without passing a worse state.
struct FirstOnes {
  std::vector<char> away;
  std::size_t wanted = 0;
  std::size_t most = 0;  ///< trials
  std::size_t trials = 0;
  int exchanges = 0;
  int both_one_way = 0;
  std::vector<char> before = away;
  FlipOrExchange trial = {};

  std::size_t propose(Random& random) const { return random.below(away.size()); }
  [[nodiscard]] bool is_away(std::size_t gap) const { return away[gap] != 0; }
  void flip(std::size_t gap) { away[gap] ^= 1; }
  void change(Random& random) { trial.change(*this, random); }
  void undo() { trial.undo(*this); }
  double energy(double) {
    ++trials;
    double sum = 0;
    int number = 0;
    int went = 0;
    int came = 0;
    for (std::size_t i = 0; i < away.size(); ++i) {
      number += away[i];
      if (away[i] != 0 && i >= wanted) sum += 1;
      went += away[i] > before[i] ? 1 : 0;
      came += away[i] < before[i] ? 1 : 0;
    }
    exchanges += went == 1 && came == 1 ? 1 : 0;
    both_one_way += went + came == 2 && went != came ? 1 : 0;
    return sum + 10 * std::abs(number - static_cast<int>(wanted));
  }
  void accept() { before = away; }
  [[nodiscard]] bool out_of_time() const { return trials >= most; }
};

TEST(Annealing, FindsTheStateOfLeastEnergyByFlipsAndExchanges) {
  FirstOnes state{std::vector<char>(20, 0), 7, 1'000'000};
  Random random(1);
  anneal(state, state.energy(0), {5.0, 0.01, 20'000}, random);
  EXPECT_EQ(state.trials, 20'001);
  for (std::size_t i = 0; i < state.away.size(); ++i) EXPECT_EQ(state.is_away(i), i < 7) << i;
  EXPECT_GT(state.exchanges, 1000);
  EXPECT_EQ(state.both_one_way, 0);
}

TEST(Annealing, EndsWhenTheStateIsOutOfTime) {
  FirstOnes state{std::vector<char>(20, 0), 7, 50};
  Random random(1);
  anneal(state, state.energy(0), {5.0, 0.01, 20'000}, random);
  EXPECT_EQ(state.trials, 50);
}

TEST(Cooling, FallsGeometrically) {
  const Cooling cooling{8.0, 2.0, 100};
  EXPECT_DOUBLE_EQ(cooling.temperature(0), 8.0);
  EXPECT_DOUBLE_EQ(cooling.temperature(50), 4.0);
  EXPECT_DOUBLE_EQ(cooling.temperature(100), 2.0);
}

}  // namespace
}  // namespace tidepool
