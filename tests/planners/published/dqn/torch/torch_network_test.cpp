#include "planners/published/dqn/torch/torch_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "planners/published/dqn/torch/plain_network.h"
#include "planners/published/dqn/torch/random_transitions.h"

namespace tidepool::dqn {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<QNetwork> network(const QNetworkOptions& options) {
  auto made = make_torch_network(options);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

NetworkWeights weights_of(const QNetwork& network) { return *read_network(network.save()); }

/// Widths around the blocks of graph_sums.
struct Size {
  std::int32_t width;
  std::int32_t hops;
};
constexpr std::array kSizes{Size{1, 1}, Size{3, 2}, Size{8, 1}, Size{33, 3}, Size{64, 4}};

TEST(TorchNetwork, HasTheValuesOfThePlainEquations) {
  Random random(5);
  for (const Size& size : kSizes) {
    SCOPED_TRACE(::testing::Message() << "width " << size.width << ", hops " << size.hops);
    const auto tested = network({.width = size.width, .hops = size.hops, .seed = random()});
    const NetworkWeights weights = weights_of(*tested);
    for (const std::int32_t nodes : {1, 2, 9, 40}) {
      const EventGraph graph = random_graph(nodes, random);
      tested->set_graph(graph);
      const PlainNetwork plain(graph, weights);
      for (int i = 0; i < 3; ++i) {
        const AgentState state = random_state(nodes, random);
        const auto expected = plain.values(state);
        const auto values = tested->values(state);
        ASSERT_EQ(values.size(), expected.size());
        for (std::size_t a = 0; a < values.size(); ++a) {
          EXPECT_NEAR(values[a], expected[a], 1e-5) << "action " << a;
        }
      }
    }
  }
}

TEST(TorchNetwork, HasTheGradientOfThePrintedLoss) {
  Random random(6);
  std::size_t compared = 0;
  for (const Size& size : kSizes) {
    SCOPED_TRACE(::testing::Message() << "width " << size.width << ", hops " << size.hops);
    const EventGraph graph = random_graph(12, random);
    const auto tested =
        make_torch_calls({.width = size.width, .hops = size.hops, .seed = random()});
    ASSERT_TRUE(tested) << tested.error().message;
    (*tested)->set_graph(graph);
    const NetworkWeights weights = (*tested)->weights();
    const auto transitions = random_transitions(12, 4, random);
    const auto batch = pointers(transitions);
    const PlainNetwork targets(graph, weights);
    const double loss = targets.loss(batch, targets);
    const NetworkWeights gradients = (*tested)->gradients(batch);
    for (std::size_t m = 0; m < 8; ++m) {
      for (int i = 0; i < 12; ++i) {
        const std::size_t at = random.below(weights.matrices[m].size());
        constexpr float kStep = 1e-3F;
        const auto slope = [&](float by) {
          NetworkWeights other = weights;
          other.matrices[m][at] += by;
          const double moved = double{other.matrices[m][at]} - double{weights.matrices[m][at]};
          return (PlainNetwork(graph, other).loss(batch, targets) - loss) / moved;
        };
        const double above = slope(kStep);
        const double below = slope(-kStep);
        // Where a ReLU bends in between, there is no one gradient.
        if (std::abs(above - below) > 0.05 * std::abs(above) + 1e-4) continue;
        EXPECT_NEAR(gradients.matrices[m][at], (above + below) / 2, 0.01 * std::abs(above) + 1e-4)
            << "W" << m + 1 << " at " << at;
        ++compared;
      }
    }
    EXPECT_NEAR((*tested)->learn(batch), loss, 1e-5);
  }
  EXPECT_GT(compared, 350U);
}

TEST(TorchNetwork, LearnsTransitionsByHeart) {
  Random random(7);
  const EventGraph graph = random_graph(30, random);
  const auto tested = network({.learning_rate = 3e-3});
  tested->set_graph(graph);
  auto transitions = random_transitions(30, 8, random);
  for (Transition& t : transitions) t.terminal = true;
  const auto batch = pointers(transitions);
  const double first = tested->learn(batch);
  double last = first;
  for (int i = 0; i < 300; ++i) last = tested->learn(batch);
  EXPECT_LT(last, first / 1000);
}

TEST(TorchNetwork, LearnsNothingAtRateZero) {
  Random random(8);
  const EventGraph graph = random_graph(20, random);
  const auto tested = network({.learning_rate = 0});
  tested->set_graph(graph);
  const std::string before = tested->save();
  const auto transitions = random_transitions(20, 4, random);
  const auto batch = pointers(transitions);
  EXPECT_EQ(tested->learn(batch), tested->learn(batch));
  EXPECT_EQ(tested->save(), before);
}

/// The number of threads of the caller must not matter, nor be changed.
TEST(TorchNetwork, GivesTheSameBitsForTheSameCalls) {
  Random random(9);
  const EventGraph small = random_graph(25, random);
  const EventGraph large = random_graph(60, random);
  const auto on_small = random_transitions(25, 6, random);
  const auto on_large = random_transitions(60, 6, random);
  const auto run = [&] {
    const auto tested = network({.seed = 4});
    std::vector<double> seen;
    for (const bool second : {false, true}) {
      const auto& transitions = second ? on_large : on_small;
      tested->set_graph(second ? large : small);
      const auto batch = pointers(transitions);
      for (int i = 0; i < 5; ++i) seen.push_back(tested->learn(batch));
      for (const Transition& t : transitions) {
        for (const float q : tested->values(t.state)) seen.push_back(q);
      }
    }
    return std::pair(seen, tested->save());
  };
  const auto first = run();
  EXPECT_EQ(first, run());
}

TEST(TorchNetwork, ValuesDoNotDependOnCallsBefore) {
  Random random(10);
  const EventGraph graph = random_graph(30, random);
  const auto tested = network({});
  tested->set_graph(graph);
  const AgentState one = random_state(30, random);
  const auto values = tested->values(one);
  (void)tested->values(random_state(30, random));
  EXPECT_EQ(tested->values(one), values);
}

TEST(TorchNetwork, GoesOnFromASavedOne) {
  Random random(11);
  const EventGraph graph = random_graph(30, random);
  const EventGraph larger = random_graph(50, random);
  const auto teacher = network({.seed = 1});
  teacher->set_graph(graph);
  const auto transitions = random_transitions(30, 6, random);
  const auto batch = pointers(transitions);
  for (int i = 0; i < 3; ++i) (void)teacher->learn(batch);

  const auto pupil = network({.seed = 2});
  ASSERT_TRUE(pupil->load(teacher->save()));
  EXPECT_EQ(pupil->save(), teacher->save());
  pupil->set_graph(larger);
  teacher->set_graph(larger);
  const AgentState state = random_state(50, random);
  EXPECT_EQ(pupil->values(state), teacher->values(state));
}

TEST(TorchNetwork, RefusesOthers) {
  const auto tested = network({.width = 16, .hops = 2});
  const std::string before = tested->save();
  const auto wider = tested->load(network({.width = 17, .hops = 2})->save());
  ASSERT_FALSE(wider);
  EXPECT_EQ(wider.error().code, ErrorCode::bad_input);
  EXPECT_THAT(wider.error().message, HasSubstr("width 17 with 2 hops, not of width 16 with 2"));
  EXPECT_FALSE(tested->load(network({.width = 16, .hops = 3})->save()));
  EXPECT_FALSE(tested->load("something else"));
  EXPECT_EQ(tested->save(), before);
  EXPECT_FALSE(make_torch_network({.width = 0}));
  EXPECT_FALSE(make_torch_network({.hops = 0}));
}

}  // namespace
}  // namespace tidepool::dqn
