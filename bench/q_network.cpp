// The network of the Q-network planner: time of a gradient step and of the values of a state.
//   bench_q_network [NODES [BATCH [STEPS]]]     (1000 nodes, batch 32, 20 steps)
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <vector>

#include "../tests/planners/dqn/torch/random_transitions.h"
#include "planners/dqn/torch/torch_network.h"

namespace tidepool::dqn {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begun) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

int run(std::int32_t nodes, std::size_t batch, int steps) {
  auto begun = Clock::now();
  const auto network = make_torch_network({});
  if (!network) {
    fmt::print(stderr, "{}\n", network.error().message);
    return 1;
  }
  fmt::print("libtorch loaded in {:.0f} ms\n", milliseconds_since(begun));
  Random random(1);
  const EventGraph graph = random_graph(nodes, random);
  (*network)->set_graph(graph);
  const auto transitions = random_transitions(nodes, 4 * batch, random);
  const auto sample = [&] {
    std::vector<const Transition*> chosen;
    while (chosen.size() < batch) chosen.push_back(&transitions[random.below(transitions.size())]);
    return chosen;
  };
  (void)(*network)->learn(sample());
  begun = Clock::now();
  for (int i = 0; i < steps; ++i) (void)(*network)->learn(sample());
  fmt::print("{} nodes, batch {}: {:.1f} ms a gradient step", nodes, batch,
             milliseconds_since(begun) / steps);
  begun = Clock::now();
  for (const Transition& t : transitions) (void)(*network)->values(t.state);
  fmt::print(", {:.2f} ms for the values of a state\n",
             milliseconds_since(begun) / static_cast<double>(transitions.size()));
  return 0;
}

}  // namespace
}  // namespace tidepool::dqn

int main(int count, char** arguments) {
  const auto argument = [&](int i, int usual) {
    return count > i ? std::atoi(arguments[i]) : usual;
  };
  return tidepool::dqn::run(argument(1, 1000), static_cast<std::size_t>(argument(2, 32)),
                            argument(3, 20));
}
