// A network as the recording that the framework of the measured VGG16 trace would have made of it:
// its mallocs, frees and accesses of an iteration.
//
// Note [Framework rules]. Read off that trace (SmartPool/AutoSwap's; SINGA, batch 100), by layer
// type. With them, the mallocs and frees of VGG16 are those of the trace in order and size.
//   - An output is a block of its own. Batch norm, ReLU, convolution and linear keep their input
//     until their backward op, pooling its input and output, dropout neither. What no one keeps is
//     freed when its reader has run.
//   - After each layer there is a temporary of the size of each output; after each backward op one
//     for each gradient it makes, and one more for each parameter (batch norm has four, the running
//     statistics too); before the updates one for each parameter of the network.
//   - A gradient of an output is a block, freed when the backward op that takes it has run.
//     Backward of the first layer makes one for the images.
//   - Gradients of weights and biases are allocated by the backward op and freed late in the next
//     iteration's, before the updates: for a while there are two of each. That of the last
//     parameter is freed after the temporaries. Those of batch norm are always there.
//   - Always there: parameters, their momenta, statistics of batch norm (running ones and the
//     batch's), images, labels, a bit for each element that dropout may drop, and a workspace for
//     each convolution.
//   - A linear layer sums its bias through a vector of ones. Backward makes the gradients of input
//     and weight twice and frees the first ones.
//   - Softmax makes probabilities, which become the gradient, a loss for each sample, and five
//     temporaries. They stay until backward is over.
// Constants that fit the trace's sizes: the workspace is that of Winograd's filters, 16 floats for
// each pair of channels, inputs rounded up to 32, and one float more (convolutions that are not 3x3
// with stride 1 do not occur in the trace: the float alone); 1,376,256 resident bytes for each
// dropout layer (28 x 2048 threads of the GTX 1080 Ti, 24 bytes each: taken to be the states of its
// random numbers, since they explain the 13.1 MiB that never appear in the trace but for 276
// bytes).
//
// Not in the trace, and so assumed: `add` makes one output, and its gradient serves all inputs;
// `fork` makes nothing, and sums gradients in the first of them. Both have the temporaries of any
// layer.
#pragma once

#include "trace/program_recording.h"

namespace tidepool {

enum class LayerKind : std::uint8_t {
  convolution,
  batch_norm,
  relu,
  pooling,
  dropout,
  linear,
  flatten,
  fork,  ///< several outputs, each of them the input
  add,
  softmax_loss,
};

struct NetworkLayer {
  LayerKind kind{};
  std::vector<std::int32_t> inputs;   ///< values; the loss has the logits
  std::vector<std::int32_t> outputs;  ///< one; of forks several; of the loss none
  /// Channels or features, of layers with parameters.
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t window = 1;  ///< of convolutions, as is the stride
  std::int64_t stride = 1;
};

/// Layers in order. A value is made by one layer and read by at most one (where more read it, there
/// is a fork); value 0 is the images. The first layer reads the images, the last one is the loss,
/// the last one with parameters is linear.
struct LayerNetwork {
  std::string name;
  std::int64_t batch = 0;
  std::vector<Bytes> values;  ///< of the whole batch
  std::vector<NetworkLayer> layers;
};

/// `iterations` >= 2 repetitions, without times.
ProgramRecording record_network(const LayerNetwork& network, int iterations);

}  // namespace tidepool
