// The Q-network of the DQN paper (equations 1 to 5) with libtorch, which is loaded when the first
// network is made: linking it would cost every start of a program a third of a second.
//
// What the paper leaves open, or is done otherwise:
// - The optimiser is Adam, with the norm of gradients limited (the paper: SGD, without a rate).
//   Gradients of W1 to W4 sum over all nodes, those of W7 over none: no one rate of plain SGD suits
//   both. A step of a matrix is the rate times the usual size of its weights (`usual_sizes`): one
//   rate for all of them made node states grow hop by hop.
// - In equation 5 what follows counts as 0 where its value is above: rewards are not positive.
// - Equation 2 takes the mean of the node states instead of their sum. With W5 times the number of
//   nodes that is the same network; the steps of W5 then do not grow with the graph.
// - How weights begin: NetworkWeights.
// - Without biases, as printed; times between events are not negative.
//
// Bits depend on the kind of CPU, as the BLAS has code for several.
#pragma once

#include <memory>

#include "planners/published/dqn/torch/torch_module.h"

namespace tidepool::dqn {

/// Fails with `runtime` where libtorch or this program's module for it cannot be loaded.
Result<std::unique_ptr<QNetwork>> make_torch_network(const QNetworkOptions& options);
/// The same without the files of networks; tests ask it for gradients.
Result<std::unique_ptr<TorchCalls>> make_torch_calls(const QNetworkOptions& options);

}  // namespace tidepool::dqn
