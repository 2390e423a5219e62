// What torch_network asks of the module, a shared library that links libtorch: headers of libtorch
// are included there (module/) and nowhere else.
#pragma once

#include <span>
#include <vector>

#include "planners/published/dqn/network_weights.h"
#include "planners/published/dqn/q_network.h"

namespace tidepool::dqn {

/// Calls are those of QNetwork. Leaves the threads of OpenMP as they are.
class TorchCalls {
 public:
  virtual ~TorchCalls() = default;
  virtual void set_graph(const EventGraph& graph) = 0;
  [[nodiscard]] virtual std::vector<float> values(const AgentState& state) = 0;
  virtual double learn(std::span<const Transition* const> batch) = 0;
  /// Of the loss of this batch (equation 4) to W1 to W8, in their places.
  virtual NetworkWeights gradients(std::span<const Transition* const> batch) = 0;
  [[nodiscard]] virtual NetworkWeights weights() const = 0;
  /// Of the same width and hops. The optimiser begins anew.
  virtual void set_weights(const NetworkWeights& weights) = 0;
};

/// The module's one function. Its name changes with this header, so that a module of another
/// version is refused.
using MakeTorchCalls = TorchCalls* (*)(const QNetworkOptions&, const NetworkWeights&);
inline constexpr const char* kMakeTorchCalls = "tidepool_torch_calls_2";

}  // namespace tidepool::dqn
