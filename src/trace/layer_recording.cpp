#include "trace/layer_recording.h"

#include <algorithm>
#include <utility>

#include "base/at.h"
#include "base/invariant.h"

namespace tidepool {
namespace {

constexpr Bytes kFloat = 4;
constexpr Bytes kRandomStates = Bytes{28} * 2048 * 24;  // of a dropout layer
constexpr Bytes kWinogradTile = 16;                     // floats of a transformed filter
constexpr Bytes kChannelGroup = 32;

Bytes workspace_of(const NetworkLayer& conv) {
  if (conv.window != 3 || conv.stride != 1) return kFloat;
  return kFloat * (kWinogradTile * align_up(conv.in, kChannelGroup) * conv.out + 1);
}

/// Blocks of a layer that are always there, and gradients of its parameters.
struct LayerBlocks {
  std::vector<BlockId> parameters;  ///< learnable ones first
  std::vector<BlockId> momenta;     ///< of the learnable ones
  std::vector<BlockId> scratch;     ///< written in every run
  std::vector<BlockId>
      gradients;               ///< of the learnable ones; at first those of the iteration before
  std::vector<BlockId> saved;  ///< from forward until backward
};

class LayerRecorder {
 public:
  explicit LayerRecorder(const LayerNetwork& network) : network_(network) {
    out_.name = network.name;
    images_ = new_block(network.values[0]);
    labels_ = new_block(per_sample());
    references_[at(images_)] = 1;  // nobody frees them
    for (const NetworkLayer& layer : network.layers) layers_.push_back(blocks_of(layer));
    value_.assign(network.values.size(), kNone);
    gradient_.assign(network.values.size(), kNone);
  }

  void run_iteration() {
    value_[0] = images_;
    ++references_[at(images_)];
    for (std::size_t l = 0; l + 1 < layers_.size(); ++l) forward(l);
    loss();
    old_gradients_.clear();
    for (std::size_t l = layers_.size() - 1; l-- > 0;) backward(l);
    finish();
  }

  Recording take() { return std::move(out_); }
  [[nodiscard]] std::size_t events() const { return out_.events.size(); }

 private:
  [[nodiscard]] Bytes per_sample() const { return kFloat * network_.batch; }

  LayerBlocks blocks_of(const NetworkLayer& layer) {
    LayerBlocks blocks;
    const Bytes channels = kFloat * layer.out;
    std::vector<Bytes> learnable;
    switch (layer.kind) {
      case LayerKind::convolution:
        learnable = {layer.in * layer.window * layer.window * channels, channels};
        blocks.scratch = {new_block(workspace_of(layer))};
        break;
      case LayerKind::linear:
        learnable = {layer.in * channels, channels};
        break;
      case LayerKind::batch_norm:
        learnable = {channels, channels};
        break;
      case LayerKind::dropout:
        blocks.scratch = {new_block((network_.values[at(layer.outputs[0])] / kFloat + 7) / 8)};
        out_.resident += kRandomStates;
        break;
      default:
        break;
    }
    for (const Bytes bytes : learnable) {
      blocks.parameters.push_back(new_block(bytes));
      blocks.momenta.push_back(new_block(bytes));
      blocks.gradients.push_back(new_block(bytes));
    }
    if (layer.kind == LayerKind::batch_norm) {
      for (int i = 0; i < 2; ++i) blocks.scratch.push_back(new_block(channels));
      for (int i = 0; i < 2; ++i) blocks.parameters.push_back(new_block(channels));
    }
    return blocks;
  }

  BlockId new_block(Bytes bytes) {
    out_.blocks.push_back({bytes, {}, {}});
    references_.push_back(0);
    return static_cast<BlockId>(out_.blocks.size()) - 1;
  }

  void event(EventKind kind, BlockId block) {
    out_.events.push_back({kind, block, Nanos{0}, kNone});
  }
  void read(BlockId block) { event(EventKind::read, block); }
  void write(BlockId block) { event(EventKind::write, block); }

  /// With one reference.
  BlockId allocate(Bytes bytes) {
    const BlockId block = new_block(bytes);
    references_[at(block)] = 1;
    event(EventKind::malloc, block);
    write(block);
    return block;
  }

  /// The recorder logs a write before each free.
  void release(BlockId block) {
    if (--references_[at(block)] > 0) return;
    write(block);
    event(EventKind::free, block);
  }

  BlockId share(BlockId block) {
    ++references_[at(block)];
    return block;
  }

  [[nodiscard]] Bytes bytes_of(BlockId block) const { return out_.blocks[at(block)].bytes; }
  void temporary(Bytes bytes) { release(allocate(bytes)); }
  void statistic(BlockId block) {
    temporary(bytes_of(block));
    read(block);
  }

  static bool keeps_input(LayerKind kind) {
    return kind == LayerKind::convolution || kind == LayerKind::batch_norm ||
           kind == LayerKind::relu || kind == LayerKind::linear || kind == LayerKind::pooling;
  }

  void forward(std::size_t l) {
    const NetworkLayer& layer = network_.layers[l];
    LayerBlocks& blocks = layers_[l];
    const BlockId x = value_[at(layer.inputs[0])];
    if (layer.kind == LayerKind::flatten || layer.kind == LayerKind::fork) {
      for (const std::int32_t output : layer.outputs) value_[at(output)] = share(x);
    } else {
      const BlockId y = allocate(network_.values[at(layer.outputs[0])]);
      for (const BlockId b : blocks.scratch) write(b);
      for (const BlockId b : blocks.parameters) read(b);
      for (const std::int32_t input : layer.inputs) read(value_[at(input)]);
      if (layer.kind == LayerKind::linear) temporary(per_sample());
      value_[at(layer.outputs[0])] = y;
    }
    if (keeps_input(layer.kind)) blocks.saved.push_back(share(x));
    if (layer.kind == LayerKind::pooling) {
      blocks.saved.push_back(share(value_[at(layer.outputs[0])]));
    }
    for (const std::int32_t output : layer.outputs) statistic(value_[at(output)]);
    for (const std::int32_t input : layer.inputs) release(value_[at(input)]);
  }

  void loss() {
    const std::int32_t logits = network_.layers.back().inputs[0];
    const Bytes bytes = network_.values[at(logits)];
    const Bytes classes = bytes / network_.batch;
    const BlockId probabilities = allocate(bytes);
    read(value_[at(logits)]);
    const BlockId sums = allocate(per_sample());
    temporary(classes);
    temporary(classes);
    temporary(per_sample());
    release(sums);
    losses_ = allocate(per_sample());
    read(labels_);
    temporary(per_sample());
    gradient_[at(logits)] = share(probabilities);
    probabilities_ = probabilities;
    statistic(probabilities);
  }

  void backward(std::size_t l) {
    const NetworkLayer& layer = network_.layers[l];
    LayerBlocks& blocks = layers_[l];
    const BlockId dy = gradient_[at(layer.outputs[0])];
    if (layer.kind == LayerKind::flatten || layer.kind == LayerKind::fork ||
        layer.kind == LayerKind::add) {
      for (const std::int32_t input : layer.inputs) gradient_[at(input)] = share(dy);
    } else {
      gradient_[at(layer.inputs[0])] = make_gradients(l);
    }
    for (const std::int32_t output : layer.outputs) read(gradient_[at(output)]);
    for (const BlockId b : blocks.saved) {
      read(b);
      release(b);
    }
    blocks.saved.clear();
    for (const std::int32_t input : layer.inputs) statistic(gradient_[at(input)]);
    for (const BlockId b : blocks.gradients) statistic(b);
    statistics_of_parameters(blocks);
    for (const std::int32_t output : layer.outputs) release(gradient_[at(output)]);
  }

  /// Returns that of the input.
  BlockId make_gradients(std::size_t l) {
    const NetworkLayer& layer = network_.layers[l];
    LayerBlocks& blocks = layers_[l];
    const Bytes input = network_.values[at(layer.inputs[0])];
    for (const BlockId b : blocks.parameters) read(b);
    if (layer.kind == LayerKind::linear) return make_linear_gradients(input, blocks);
    const BlockId dx = allocate(input);
    for (const BlockId b : blocks.scratch) write(b);
    if (layer.kind == LayerKind::convolution) {
      for (BlockId& gradient : blocks.gradients) {
        old_gradients_.push_back(std::exchange(gradient, allocate(bytes_of(gradient))));
      }
    } else {
      for (const BlockId b : blocks.gradients) write(b);
    }
    return dx;
  }

  BlockId make_linear_gradients(Bytes input, LayerBlocks& blocks) {
    BlockId& weight = blocks.gradients[0];
    BlockId& bias = blocks.gradients[1];
    old_gradients_.push_back(weight);
    old_gradients_.push_back(bias);
    const BlockId first_weight = allocate(bytes_of(weight));
    const BlockId first_input = allocate(input);
    bias = allocate(bytes_of(bias));
    temporary(per_sample());
    const BlockId dx = allocate(input);
    release(first_input);
    weight = allocate(bytes_of(weight));
    release(first_weight);
    return dx;
  }

  void statistics_of_parameters(const LayerBlocks& blocks) {
    for (const BlockId b : blocks.parameters) statistic(b);
  }

  void finish() {
    release(gradient_[0]);
    release(value_[at(network_.layers.back().inputs[0])]);
    release(losses_);
    release(probabilities_);
    free_old_gradients();
    for (const LayerBlocks& blocks : layers_) {
      for (std::size_t i = 0; i < blocks.gradients.size(); ++i) {
        read(blocks.gradients[i]);
        write(blocks.momenta[i]);
        write(blocks.parameters[i]);
      }
    }
    write(images_);
    write(labels_);
  }

  /// The last layer's were noted first: its weight's, then its bias's.
  void free_old_gradients() {
    for (std::size_t i = 0; i < old_gradients_.size(); i += 2) {
      if (i > 0) free_old(old_gradients_[i + 1]);
      free_old(old_gradients_[i]);
    }
    for (const LayerBlocks& blocks : layers_) statistics_of_parameters(blocks);
    free_old(old_gradients_[1]);
  }

  /// Those that were there before the recording have no reference.
  void free_old(BlockId gradient) {
    references_[at(gradient)] = 1;
    release(gradient);
  }

  const LayerNetwork& network_;
  Recording out_;
  std::vector<std::int32_t> references_;  ///< per block: who still needs it
  BlockId images_ = kNone;
  BlockId labels_ = kNone;
  BlockId losses_ = kNone;
  BlockId probabilities_ = kNone;
  std::vector<LayerBlocks> layers_;
  std::vector<BlockId> value_;          ///< per value: its block in the iteration
  std::vector<BlockId> gradient_;       ///< per value
  std::vector<BlockId> old_gradients_;  ///< of the iteration before
};

}  // namespace

ProgramRecording record_network(const LayerNetwork& network, int iterations) {
  invariant(iterations >= 2, "recordings are of two iterations or more");
  LayerRecorder recorder(network);
  recorder.run_iteration();
  const auto period = static_cast<std::int64_t>(recorder.events());
  for (int i = 1; i < iterations; ++i) recorder.run_iteration();
  return {recorder.take(), {0, period, iterations}};
}

}  // namespace tidepool
