// Every backward kernel against finite differences of its forward kernel.
#include <gtest/gtest.h>

#include <algorithm>

#include "nn/kernel_cases.h"
#include "nn/kernel_testing.h"

namespace tidepool::nn::testing {
namespace {

/// A forward op, its operands, and the gradient that reaches one of its outputs.
class ForwardRun {
 public:
  /// `weights` is an operand of `backward` with the shape of output `y`.
  ForwardRun(const OpRun& forward, std::size_t y, const OpRun& backward, std::size_t weights)
      : forward_(forward), y_(y), backward_(backward), weights_(weights) {}

  /// Sum of output times weight: the function whose gradient the backward kernel gives.
  [[nodiscard]] double value() const {
    forward_.run_reference();
    double sum = 0;
    for_each_index(forward_.desc().operands[y_], [&](auto... index) {
      sum += static_cast<double>(forward_.at(y_, index...)) *
             static_cast<double>(backward_.at(weights_, index...));
    });
    return sum;
  }

  /// Expects operand `gradient` of the backward op to be the derivative by forward operand `x`.
  void expect_gradient(std::size_t x, std::size_t gradient, double step = 1e-2,
                       double tolerance = 2e-3) const {
    double largest = 0;
    for_each_index(forward_.desc().operands[x], [&](auto... index) {
      largest = std::max(largest, std::abs(static_cast<double>(backward_.at(gradient, index...))));
    });
    for_each_index(forward_.desc().operands[x], [&](auto... index) {
      float& element = forward_.at(x, index...);
      const float middle = element;
      element = middle + static_cast<float>(step);
      const double above = value();
      element = middle - static_cast<float>(step);
      const double below = value();
      element = middle;
      EXPECT_NEAR(backward_.at(gradient, index...), (above - below) / (2 * step),
                  tolerance * largest + 1e-5);
    });
  }

 private:
  const OpRun& forward_;
  std::size_t y_;
  const OpRun& backward_;
  std::size_t weights_;
};

void check_convolution(const ConvShape& shape) {
  const std::vector<OpDesc> ops = convolutions(shape);
  const OpRun forward(ops[0], 1), weights(ops[1], 2);
  weights.copy_operand(0, forward, 0);
  weights.run_reference();
  ForwardRun(forward, 2, weights, 1).expect_gradient(1, 2);
  if (ops.size() < 3) return;
  const OpRun data(plain(ops[2]), 3), plain_forward(plain(ops[0]), 1);
  data.copy_operand(1, plain_forward, 1);
  data.run_reference();
  ForwardRun(plain_forward, 2, data, 0).expect_gradient(0, 2);
}

TEST(ReferenceConvolution, BackwardMatchesFiniteDifferences) {
  check_convolution({2, 3, 4, 5, 3, 1, 1});
  check_convolution({2, 3, 2, 6, 3, 2, 1});
  check_convolution({1, 16, 3, 4, 3, 1, 1});
  check_convolution({1, 16, 2, 5, 3, 2, 1});
  check_convolution({1, 17, 3, 4, 1, 2, 0});
  check_convolution({2, 16, 3, {4, 5}, {1, 3}, 1, {0, 1}});
  check_convolution({1, 17, 2, {5, 3}, {3, 1}, 2, {1, 0}});
  check_convolution({2, 6, 6, 5, 3, 2, 1, 6});
  check_convolution({2, 6, 4, 4, 3, 1, 1, 2});
}

TEST(ReferenceBatchNorm, BackwardMatchesFiniteDifferences) {
  for (const TensorDesc& x : {blocked(3, 5, 2, 3), TensorDesc{{9, 4}}}) {
    const std::vector<OpDesc> ops = batch_norms(x);
    const OpRun forward(ops[0], 1), backward(ops[1], 2);
    forward.run_reference();
    backward.copy_operand(0, forward, 0);
    backward.copy_operand(2, forward, 4);
    backward.copy_operand(3, forward, 5);
    backward.copy_operand(4, forward, 1);
    backward.run_reference();
    const ForwardRun function(forward, 3, backward, 1);
    function.expect_gradient(0, 5);
    function.expect_gradient(1, 6);
    function.expect_gradient(2, 7);
  }
}

TEST(ReferenceRelu, BackwardMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = relus_and_dropouts(blocked(2, 5, 3, 3));
  const OpRun forward(ops[0], 1), backward(ops[2], 2);
  forward.run_reference();
  backward.copy_operand(0, forward, 1);
  backward.run_reference();
  ForwardRun(forward, 1, backward, 1).expect_gradient(0, 2, 1e-5, 2e-2);
}

TEST(ReferenceGelu, BackwardMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = gelus(blocked(2, 5, 3, 3));
  const OpRun forward(ops[0], 1), backward(ops[1], 2);
  for_each_index(ops[0].operands[0], [&](auto... index) { forward.at(0, index...) *= 4; });
  backward.copy_operand(0, forward, 0);
  backward.run_reference();
  ForwardRun(forward, 1, backward, 1).expect_gradient(0, 2);
}

TEST(ReferenceMaxPool, BackwardMatchesFiniteDifferences) {
  for (const Window& attributes :
       {Window{2, 2, 0}, Window{3, 2, 1}, Window{3, 1, 1}, Window{3, 2, 0}}) {
    const OpDesc desc = max_pools(blocked(2, 3, 6, 6), attributes)[0];
    const OpRun forward(desc, 1);
    forward.run_reference();
    const auto& operands = desc.operands;
    const OpRun backward(
        make_op(MaxPoolBackward{attributes}, {operands[1], operands[2], operands[0]}), 2);
    backward.copy_operand(1, forward, 2);
    backward.run_reference();
    ForwardRun(forward, 1, backward, 0).expect_gradient(0, 2, 1e-4, 1e-2);
  }
}

TEST(ReferenceAvgPool, BackwardMatchesFiniteDifferences) {
  for (const auto& [window, stride, padding] :
       {Window{2, 2, 0}, Window{3, 2, 0}, Window{2, 3, 0}, Window{6, 6, 0}, Window{3, 1, 1},
        Window{{3, 2}, 2, {1, 0}}}) {
    const std::vector<OpDesc> ops = avg_pools(blocked(2, 3, 6, 6), window, stride, padding);
    const OpRun forward(ops[0], 1), backward(ops[1], 2);
    backward.run_reference();
    ForwardRun(forward, 1, backward, 0).expect_gradient(0, 1);
  }
}

TEST(ReferenceChannelBias, BackwardMatchesFiniteDifferences) {
  // The bias alone: it is added to what there is, which a forward run changes.
  const std::vector<OpDesc> ops = channel_biases(blocked(2, 5, 3, 3));
  const OpRun backward(ops[1], 2);
  backward.run_reference();
  const auto value = [&](float step, std::int64_t channel) {
    const OpRun forward(ops[0], 1);
    forward.at(1, channel) += step;
    forward.run_reference();
    double sum = 0;
    for_each_index(ops[0].operands[0], [&](auto... index) {
      sum += static_cast<double>(forward.at(0, index...)) *
             static_cast<double>(backward.at(0, index...));
    });
    return sum;
  };
  for (std::int64_t c = 0; c < 5; ++c) {
    EXPECT_NEAR(backward.at(1, c), (value(0.5F, c) - value(-0.5F, c)), 1e-5);
  }
}

TEST(ReferenceConcat, BackwardMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = concats(blocked(2, 1, 2, 3), {3, 17, 2});
  const OpRun forward(ops[0], 1);
  for (std::size_t i = 0; i < 3; ++i) {
    const OpRun backward(ops[i + 1], 2);
    backward.run_reference();
    ForwardRun(forward, 3, backward, 0).expect_gradient(i, 1);
  }
}

TEST(ReferenceDropout, BackwardMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = relus_and_dropouts(blocked(2, 5, 3, 3));
  const OpRun forward(ops[4], 1), backward(ops[6], 2);
  forward.run_reference();
  backward.copy_operand(1, forward, 3);
  backward.run_reference();
  ForwardRun(forward, 2, backward, 0).expect_gradient(0, 2);
}

TEST(ReferenceLinear, BackwardMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = linears(3, 7, 5);
  const OpRun forward(ops[0], 1), data(ops[1], 2), weights(ops[2], 3);
  data.copy_operand(1, forward, 1);
  data.run_reference();
  weights.copy_operand(0, forward, 0);
  weights.run_reference();
  ForwardRun(forward, 3, data, 0).expect_gradient(0, 2);
  ForwardRun(forward, 3, weights, 1).expect_gradient(1, 2);
  ForwardRun(forward, 3, weights, 1).expect_gradient(2, 3);
}

TEST(ReferenceProjection, BackwardMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = projections(3, 7, 5);
  const OpRun forward(ops[0], 1), weights(ops[1], 3);
  const OpRun data(
      make_op(LinearBackwardData{}, {ops[0].operands[2], ops[0].operands[1], ops[0].operands[0]}),
      2);
  data.copy_operand(1, forward, 1);
  data.run_reference();
  weights.copy_operand(0, forward, 0);
  weights.run_reference();
  ForwardRun(forward, 2, data, 0).expect_gradient(0, 2);
  ForwardRun(forward, 2, weights, 1).expect_gradient(1, 2);
}

TEST(ReferenceEmbedding, BackwardMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = embeddings({3, 7, 4, 1}, 5, 9);
  const OpRun forward(ops[0], 1), backward(ops[1], 2);
  backward.copy_operand(0, forward, 0);
  backward.run_reference();
  const ForwardRun function(forward, 3, backward, 1);
  function.expect_gradient(1, 2);
  function.expect_gradient(2, 3);
}

TEST(ReferenceLayerNorm, BackwardMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = layer_norms(5, 7);
  const OpRun forward(ops[0], 1), backward(ops[1], 2);
  forward.run_reference();
  backward.copy_operand(0, forward, 0);
  backward.copy_operand(2, forward, 4);
  backward.copy_operand(3, forward, 5);
  backward.copy_operand(4, forward, 1);
  backward.run_reference();
  const ForwardRun function(forward, 3, backward, 1);
  function.expect_gradient(0, 5, 1e-2, 5e-3);
  function.expect_gradient(1, 6);
  function.expect_gradient(2, 7);
}

TEST(ReferenceAttention, ProductsHaveEachOtherAsGradients) {
  const std::vector<OpDesc> ops = attention_products({2, 3, 4, 2});
  const OpRun scores(ops[0], 1), mix(ops[1], 2), transposed(ops[2], 3);
  // ds is operand 0 of both; with it and b the one gives da, with it and a the other gives db.
  mix.copy_operand(1, scores, 1);
  mix.run_reference();
  transposed.copy_operand(1, scores, 0);
  transposed.run_reference();
  ForwardRun(scores, 2, mix, 0).expect_gradient(0, 2);
  ForwardRun(scores, 2, transposed, 0).expect_gradient(1, 2);

  const OpRun values(ops[2], 4), weights(ops[0], 5);  // of y = scale * s b
  values.copy_operand(0, mix, 0);
  values.run_reference();
  weights.copy_operand(1, mix, 1);
  weights.run_reference();
  ForwardRun(mix, 2, values, 1).expect_gradient(1, 2);
  ForwardRun(mix, 2, weights, 0).expect_gradient(0, 2);
}

TEST(ReferenceAttention, BackwardOfSoftmaxMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = attention_softmaxes({2, 5, 4, 2});
  for (const std::size_t variant : {0, 2}) {
    const OpRun forward(ops[variant], 1), backward(ops[4], 2);
    forward.run_reference();
    backward.copy_operand(0, forward, 1);
    backward.run_reference();
    ForwardRun(forward, 1, backward, 1).expect_gradient(0, 2);
  }
}

TEST(ReferenceSoftmaxLoss, BackwardMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = softmax_losses(4, 6);
  const OpRun forward(ops[0], 1), backward(ops[1], 2);
  forward.run_reference();
  backward.copy_operand(0, forward, 3);
  backward.copy_operand(1, forward, 1);
  backward.run_reference();
  for_each_index(ops[0].operands[0], [&](auto n, auto k, auto, auto) {
    constexpr float kStep = 1e-2F;
    float& logit = forward.at(0, n, k);
    const float middle = logit;
    logit = middle + kStep;
    forward.run_reference();
    const double above = static_cast<double>(forward.at(2, 0));
    logit = middle - kStep;
    forward.run_reference();
    const double below = static_cast<double>(forward.at(2, 0));
    logit = middle;
    EXPECT_NEAR(backward.at(2, n, k), (above - below) / (2 * static_cast<double>(kStep)), 1e-4);
  });
}

TEST(ReferencePixelLoss, BackwardMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = pixel_losses(blocked(2, 5, 3, 2));
  const OpRun forward(ops[0], 1), backward(ops[1], 2);
  forward.run_reference();
  backward.copy_operand(0, forward, 3);
  backward.copy_operand(1, forward, 1);
  backward.run_reference();
  for_each_index(ops[0].operands[0], [&](auto... index) {
    constexpr float kStep = 1e-2F;
    float& logit = forward.at(0, index...);
    const float middle = logit;
    logit = middle + kStep;
    forward.run_reference();
    const double above = static_cast<double>(forward.at(2, 0));
    logit = middle - kStep;
    forward.run_reference();
    const double below = static_cast<double>(forward.at(2, 0));
    logit = middle;
    EXPECT_NEAR(backward.at(2, index...), (above - below) / (2 * static_cast<double>(kStep)), 1e-4);
  });
}

TEST(ReferenceUpsample, BackwardMatchesFiniteDifferences) {
  for (const std::int64_t factor : {1, 2, 3, 4}) {
    const std::vector<OpDesc> ops = upsamplings(blocked(2, 3, 3, 2), factor);
    for (const std::size_t mode : {0U, 2U}) {
      const OpRun forward(ops[mode], 1), backward(ops[mode + 1], 2);
      backward.run_reference();
      ForwardRun(forward, 1, backward, 0).expect_gradient(0, 1);
    }
  }
}

TEST(ReferenceSquaredError, BackwardMatchesFiniteDifferences) {
  const std::vector<OpDesc> ops = squared_errors(blocked(2, 5, 3, 3));
  const OpRun forward(ops[0], 1), backward(ops[1], 2);
  backward.copy_operand(0, forward, 0);
  backward.copy_operand(1, forward, 1);
  backward.run_reference();
  for_each_index(ops[0].operands[0], [&](auto... index) {
    constexpr float kStep = 0.25F;  // exact for a parabola, but for rounding
    float& element = forward.at(0, index...);
    const float middle = element;
    element = middle + kStep;
    forward.run_reference();
    const double above = static_cast<double>(forward.at(2, 0));
    element = middle - kStep;
    forward.run_reference();
    const double below = static_cast<double>(forward.at(2, 0));
    element = middle;
    EXPECT_NEAR(backward.at(2, index...), (above - below) / (2 * static_cast<double>(kStep)), 2e-6);
  });
}

}  // namespace
}  // namespace tidepool::nn::testing
