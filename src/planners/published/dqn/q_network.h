// QNetwork: what the agent asks of its network (DQN paper, sections 4.3, 4.4, 4.9 and 4.10). Plain
// data, so that the agent needs no library of networks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tidepool::dqn {

/// The events of an iteration as the network sees them: what no action changes.
struct EventGraph {
  /// Entries of node v: [first_neighbour[v], first_neighbour[v + 1]). Symmetric; each node is a
  /// neighbour of itself.
  std::vector<std::int32_t> first_neighbour;
  std::vector<std::int32_t> neighbours;
  std::vector<float> lags;  ///< of each entry: time between the two events over the longest one
  /// Of each node, over their maxima: bytes, transfer time, recompute time, time to the next use,
  /// action type (0, 1/2: offload, 1: remove). The sixth feature is AgentState::valid.
  std::vector<std::array<float, 5>> features;

  [[nodiscard]] std::int32_t nodes() const { return static_cast<std::int32_t>(features.size()); }
};

/// Node 0 stands for doing nothing, which is always valid and not listed.
struct AgentState {
  std::int32_t current = 0;         ///< the node under execution
  std::vector<std::int32_t> valid;  ///< action nodes that may be taken now, ascending
  bool must_act = false;            ///< doing nothing would run out of memory: it is no action
};

struct Transition {
  AgentState state;
  std::int32_t action = 0;  ///< 0 or one of state.valid
  float reward = 0;         ///< of this action and of those up to `next`, discounted
  float discount = 1;       ///< of the value of `next`
  AgentState next;
  bool terminal = false;  ///< nothing follows: the value of `next` is zero
};

/// Of a network that is made new.
struct QNetworkOptions {
  std::int32_t width = 64;  ///< p
  std::int32_t hops = 4;    ///< T
  double learning_rate = 1e-3;
  std::uint64_t seed = 1;  ///< of the initial weights
};

/// Not thread-safe. The same calls give the same bits.
class QNetwork {
 public:
  virtual ~QNetwork() = default;
  /// All calls that follow are about this graph, which must outlive them.
  virtual void set_graph(const EventGraph& graph) = 0;
  /// Q of doing nothing, then of each of state.valid.
  [[nodiscard]] virtual std::vector<float> values(const AgentState& state) = 0;
  /// One step of fitted Q-iteration on a mini-batch (eq. 4 and 5); the mean loss before it.
  virtual double learn(std::span<const Transition* const> batch) = 0;
  /// Weights, with what they need to be read again.
  [[nodiscard]] virtual std::string save() const = 0;
  /// Fails with `parse` where these bytes are no network of this width and number of hops.
  virtual Result<void> load(std::string_view saved) = 0;
};

}  // namespace tidepool::dqn
