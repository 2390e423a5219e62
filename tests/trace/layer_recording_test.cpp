#include "trace/layer_recording.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "trace/block_lives.h"
#include "trace/recording_csv.h"

namespace tidepool {
namespace {

/// A chain of layers, each after the one before.
class Chain {
 public:
  Chain(std::int64_t batch, std::int64_t channels, std::int64_t side)
      : channels_(channels), side_(side) {
    network_.batch = batch;
    network_.values.push_back(value_bytes());
  }

  Chain& add(LayerKind kind, std::int64_t out = 0) {
    NetworkLayer layer{kind, {last()}, {last() + 1}};
    layer.in = kind == LayerKind::linear ? channels_ * side_ * side_ : channels_;
    if (kind == LayerKind::convolution || kind == LayerKind::linear) channels_ = out;
    if (kind == LayerKind::linear) side_ = 1;
    if (kind == LayerKind::pooling) side_ /= 2;
    layer.out = channels_;
    if (kind == LayerKind::convolution) layer.window = 3;
    network_.layers.push_back(layer);
    network_.values.push_back(value_bytes());
    return *this;
  }
  Chain& norm_relu() { return add(LayerKind::batch_norm).add(LayerKind::relu); }

  LayerNetwork finish() {
    network_.layers.push_back({LayerKind::softmax_loss, {last()}, {}});
    return std::move(network_);
  }

 private:
  [[nodiscard]] std::int32_t last() const {
    return static_cast<std::int32_t>(network_.values.size()) - 1;
  }
  [[nodiscard]] Bytes value_bytes() const { return 4 * network_.batch * channels_ * side_ * side_; }

  LayerNetwork network_;
  std::int64_t channels_;
  std::int64_t side_;
};

LayerNetwork vgg16() {
  Chain chain(100, 3, 32);
  constexpr std::int64_t kWidths[] = {64, 128, 256, 512, 512};
  constexpr int kConvolutions[] = {2, 2, 3, 3, 3};
  for (int stage = 0; stage < 5; ++stage) {
    for (int i = 1; i <= kConvolutions[stage]; ++i) {
      chain.add(LayerKind::convolution, kWidths[stage]).norm_relu();
      if (i < kConvolutions[stage]) chain.add(LayerKind::dropout);
    }
    chain.add(LayerKind::pooling);
  }
  chain.add(LayerKind::flatten).add(LayerKind::dropout);
  chain.add(LayerKind::linear, 512).norm_relu().add(LayerKind::dropout);
  return chain.add(LayerKind::linear, 10).finish();
}

/// Sizes of mallocs, and of frees as negative numbers, in order.
std::vector<Bytes> calls(const Recording& recording, const Iteration& iteration) {
  std::vector<Bytes> sizes;
  for (std::int64_t i = 0; i < iteration.period; ++i) {
    const TraceEvent& e = recording.events[static_cast<std::size_t>(iteration.start + i)];
    const Bytes bytes = recording.blocks[static_cast<std::size_t>(e.block)].bytes;
    if (e.kind == EventKind::malloc) sizes.push_back(bytes);
    if (e.kind == EventKind::free) sizes.push_back(-bytes);
  }
  return sizes;
}

/// A recording of VGG16 had 418 calls where the framework makes 1020.
TEST(LayerRecording, Vgg16HasTheCallsAndThePeakOfTheMeasuredTrace) {
  constexpr const char* kFile = TIDEPOOL_SHARED_DATA "/vgg16-trace/vgg16_batch100_3iterations.csv";
  if (!std::filesystem::exists(kFile)) GTEST_SKIP() << kFile << " is not there";
  const auto text = read_file(kFile);
  ASSERT_TRUE(text) << text.error().message;
  const auto measured = read_recording_csv(*text, kFile);
  ASSERT_TRUE(measured) << measured.error().message;
  const auto iteration = find_iteration(*measured);
  ASSERT_TRUE(iteration);
  const ProgramRecording ours = record_network(vgg16(), 3);

  const std::vector<Bytes> expected = calls(*measured, *iteration);
  EXPECT_EQ(expected.size(), 1020U);
  EXPECT_EQ(calls(ours.recording, ours.iteration), expected);
  // Resident bytes are not in the file; the published peak has them.
  const BlockLives block_lives = find_block_lives(ours.recording, ours.iteration);
  EXPECT_EQ(block_lives.peak - block_lives.resident, find_block_lives(*measured, *iteration).peak);
  EXPECT_NEAR(static_cast<double>(block_lives.peak), 679'197'000, 300);
}

TEST(LayerRecording, IsValidAndRepeats) {
  const ProgramRecording recorded = record_network(vgg16(), 3);
  BlockOrder order;
  for (const TraceEvent& event : recorded.recording.events) {
    ASSERT_EQ(order.next(event.kind, event.block), "");
  }
  const auto found = find_iteration(recorded.recording);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->start, recorded.iteration.start);
  EXPECT_EQ(found->period, recorded.iteration.period);
  EXPECT_EQ(found->repeats, 3);
}

/// Both branches of a residual block read one value; its gradients become one block.
TEST(LayerRecording, NothingOfAResidualBlockIsLeftOver) {
  LayerNetwork network;
  network.batch = 2;
  const Bytes image = 4 * 2 * 8 * 4 * 4;
  network.values = {image, image, image, image, image, image, image, 4 * 2 * 10};
  network.layers = {{LayerKind::convolution, {0}, {1}, 8, 8, 3},
                    {LayerKind::fork, {1}, {2, 3}},
                    {LayerKind::convolution, {2}, {4}, 8, 8, 3},
                    {LayerKind::add, {4, 3}, {5}},
                    {LayerKind::flatten, {5}, {6}},
                    {LayerKind::linear, {6}, {7}, 8 * 4 * 4, 10},
                    {LayerKind::softmax_loss, {7}, {}}};
  const ProgramRecording recorded = record_network(network, 3);
  const auto found = find_iteration(recorded.recording);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->period, recorded.iteration.period);
  // As many frees as mallocs, but for the gradients of the three layers with weights: those freed
  // are older.
  std::vector<Bytes> sizes = calls(recorded.recording, recorded.iteration);
  Bytes sum = 0;
  for (const Bytes bytes : sizes) sum += bytes;
  EXPECT_EQ(sum, 0);
  BlockOrder order;
  for (const TraceEvent& event : recorded.recording.events) {
    ASSERT_EQ(order.next(event.kind, event.block), "");
  }
}

}  // namespace
}  // namespace tidepool
