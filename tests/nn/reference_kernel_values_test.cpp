// Hand-checked values, and the properties sub-batches and recomputation rest on.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "nn/kernel_cases.h"
#include "nn/kernel_testing.h"

namespace tidepool::nn::testing {
namespace {

void set(const OpRun& run, std::size_t operand, std::initializer_list<float> values) {
  ASSERT_EQ(run.buffer(operand).size(), values.size() * sizeof(float));
  std::copy(values.begin(), values.end(), run.floats(operand));
}

std::vector<float> values(const OpRun& run, std::size_t operand) {
  const float* first = run.floats(operand);
  return {first, first + run.buffer(operand).size() / sizeof(float)};
}

TEST(ReferenceConvolution, SlidesItsWindowOverAPaddedImage) {
  const OpRun run(
      make_op(ConvForward{Window{3, 1, 1}}, {{{1, 1, 2, 2}}, {{1, 1, 3, 3}}, {{1, 1, 2, 2}}}), 1);
  set(run, 0, {1, 2, 3, 4});
  set(run, 1, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  run.run_reference();
  EXPECT_EQ(values(run, 2), (std::vector<float>{77, 67, 47, 37}));
}

TEST(ReferenceConvolution, SlidesARowOverTheRowsOfAnImage) {
  const OpRun run(make_op(ConvForward{Window{{1, 3}, 1, {0, 1}}},
                          {{{1, 1, 2, 3}}, {{1, 1, 1, 3}}, {{1, 1, 2, 3}}}),
                  1);
  set(run, 0, {1, 2, 3, 4, 5, 6});
  set(run, 1, {1, 10, 100});
  run.run_reference();
  EXPECT_EQ(values(run, 2), (std::vector<float>{210, 321, 32, 540, 654, 65}));
}

TEST(ReferenceConvolution, AFilterSeesTheChannelsOfItsGroup) {
  const OpRun depthwise(
      make_op(ConvForward{Window{}}, {{{1, 3, 1, 1}}, {{3, 1, 1, 1}}, {{1, 3, 1, 1}}}), 1);
  set(depthwise, 0, {1, 2, 3});
  set(depthwise, 1, {10, 20, 30});
  depthwise.run_reference();
  EXPECT_EQ(values(depthwise, 2), (std::vector<float>{10, 40, 90}));

  const TensorDesc x{{1, 4, 1, 1}}, weight{{2, 2, 1, 1}}, y{{1, 2, 1, 1}};
  const OpRun forward(make_op(ConvForward{Window{}}, {x, weight, y}), 1);
  set(forward, 0, {1, 2, 3, 4});
  set(forward, 1, {1, 10, 100, 1000});
  forward.run_reference();
  EXPECT_EQ(values(forward, 2), (std::vector<float>{21, 4300}));
  const OpRun data(make_op(ConvBackwardData{Window{}}, {y, weight, x}), 1);
  set(data, 0, {2, 3});
  set(data, 1, {1, 10, 100, 1000});
  data.run_reference();
  EXPECT_EQ(values(data, 2), (std::vector<float>{2, 20, 300, 3000}));
  const OpRun weights(make_op(ConvBackwardWeights{Window{}}, {x, y, weight}), 1);
  set(weights, 0, {1, 2, 3, 4});
  set(weights, 1, {10, 100});
  weights.run_reference();
  EXPECT_EQ(values(weights, 2), (std::vector<float>{10, 20, 300, 400}));
}

TEST(ReferenceChannelBias, IsAddedToEachElementOfItsChannel) {
  const TensorDesc y{{2, 2, 1, 2}}, bias{{2}};
  const OpRun forward(make_op(ChannelBiasForward{}, {y, bias}), 1);
  set(forward, 0, {1, 2, 3, 4, 5, 6, 7, 8});
  set(forward, 1, {10, 100});
  forward.run_reference();
  EXPECT_EQ(values(forward, 0), (std::vector<float>{11, 12, 103, 104, 15, 16, 107, 108}));
  const OpRun backward(make_op(ChannelBiasBackward{}, {y, bias}), 1);
  set(backward, 0, {1, 2, 3, 4, 5, 6, 7, 8});
  backward.run_reference();
  EXPECT_EQ(values(backward, 1), (std::vector<float>{14, 22}));
}

TEST(ReferenceConcat, PutsTheChannelsOfAnImageOneAfterTheOther) {
  const TensorDesc a{{2, 1, 1, 2}}, b{{2, 2, 1, 2}}, y{{2, 3, 1, 2}};
  const OpRun forward(make_op(ConcatForward{2}, {a, b, y}), 1);
  set(forward, 0, {1, 2, 3, 4});
  set(forward, 1, {11, 12, 13, 14, 15, 16, 17, 18});
  forward.run_reference();
  EXPECT_EQ(values(forward, 2), (std::vector<float>{1, 2, 11, 12, 13, 14, 3, 4, 15, 16, 17, 18}));
  const OpRun backward(make_op(ConcatBackward{1}, {y, b}), 1);
  set(backward, 0, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  backward.run_reference();
  EXPECT_EQ(values(backward, 1), (std::vector<float>{3, 4, 5, 6, 9, 10, 11, 12}));
}

TEST(ReferenceBatchNorm, NormalisesToShiftAndScaleWithTheBiasedVariance) {
  const TensorDesc x{{4, 1}}, c{{1}};
  const OpRun run(make_op(BatchNormForward{}, {x, c, c, x, c, c}), 1);
  set(run, 0, {1, 3, 5, 7});
  set(run, 1, {2});
  set(run, 2, {10});
  run.run_reference();
  EXPECT_EQ(run.at(4, 0), 4);
  EXPECT_EQ(run.at(5, 0), 5);
  EXPECT_NEAR(run.at(3, 0), 10 - 2 * 3 / std::sqrt(5.00001), 1e-6);
  EXPECT_NEAR(run.at(3, 3), 10 + 2 * 3 / std::sqrt(5.00001), 1e-6);
}

TEST(ReferenceBatchNorm, RunningVarianceIsUnbiased) {
  const TensorDesc c{{1}};
  const BatchNormStatistics attributes{.momentum = 0.25F, .values = 5};
  const OpRun run(make_op(attributes, {c, c, c, c}), 1);
  set(run, 0, {8});
  set(run, 1, {4});
  set(run, 2, {4});
  set(run, 3, {1});
  run.run_reference();
  EXPECT_EQ(run.at(2, 0), 0.75F * 4 + 0.25F * 8);
  EXPECT_EQ(run.at(3, 0), 0.75F * 1 + 0.25F * 5);
}

TEST(ReferenceBatchNorm, InferenceWithTheBatchStatisticsIsTheForwardPass) {
  for (const TensorDesc& x : {blocked(3, 5, 2, 3), TensorDesc{{9, 4}}}) {
    const TensorDesc c{{x.dims[1]}};
    const OpRun forward(make_op(BatchNormForward{}, {x, c, c, x, c, c}), 1);
    const OpRun inference(make_op(BatchNormInference{}, {x, c, c, c, c, x}), 2);
    forward.run_reference();
    inference.copy_operand(0, forward, 0);
    inference.copy_operand(1, forward, 1);
    inference.copy_operand(2, forward, 2);
    inference.copy_operand(3, forward, 4);
    inference.copy_operand(4, forward, 5);
    inference.run_reference();
    for_each_index(x, [&](auto... index) {
      EXPECT_NEAR(inference.at(5, index...), forward.at(3, index...), 1e-5);
    });
  }
}

TEST(ReferenceMaxPool, KeepsThePositionOfTheFirstMaximum) {
  const TensorDesc x{{1, 1, 2, 4}}, y{{1, 1, 1, 2}};
  const OpRun run(make_op(MaxPoolForward{Window{2, 2, 0}}, {x, y, as_type(y, ElementType::u8)}), 1);
  set(run, 0, {1, 2, 0, 0, 5, 5, 0, 0});
  run.run_reference();
  EXPECT_EQ(values(run, 1), (std::vector<float>{5, 0}));
  EXPECT_EQ(run.buffer(2).data()[0], std::byte{2});
  EXPECT_EQ(run.buffer(2).data()[1], std::byte{0});
}

TEST(ReferenceAvgPool, TakesTheMeanOfWholeWindows) {
  const OpRun run(make_op(AvgPoolForward{Window{2, 2, 0}}, {{{1, 1, 2, 5}}, {{1, 1, 1, 2}}}), 1);
  set(run, 0, {1, 2, 0, 0, 100, 5, 4, 0, 1, 100});
  run.run_reference();
  EXPECT_EQ(values(run, 1), (std::vector<float>{3, 0.25F}));
}

TEST(ReferenceAvgPool, LeavesPaddingOutOfTheMean) {
  const OpRun run(make_op(AvgPoolForward{Window{3, 1, 1}}, {{{1, 1, 2, 3}}, {{1, 1, 2, 3}}}), 1);
  set(run, 0, {1, 2, 3, 4, 5, 6});
  run.run_reference();
  EXPECT_EQ(values(run, 1), (std::vector<float>{3, 3.5F, 4, 3, 3.5F, 4}));
}

TEST(ReferenceAvgPool, SharesAGradientAmongTheWindow) {
  const OpRun run(make_op(AvgPoolBackward{Window{2, 2, 0}}, {{{1, 1, 1, 2}}, {{1, 1, 2, 5}}}), 1);
  set(run, 0, {4, 8});
  run.run_reference();
  EXPECT_EQ(values(run, 1), (std::vector<float>{1, 1, 2, 2, 0, 1, 1, 2, 2, 0}));
}

// What torch.nn.functional.gelu gives, and the slopes at 0 and far out.
TEST(ReferenceGelu, IsTheExactForm) {
  const TensorDesc x{{6}};
  const OpRun forward(gelus(x)[0], 1);
  set(forward, 0, {0, 1, -1, 0.5F, -3, 20});
  forward.run_reference();
  const float expected[] = {0, 0.84134475F, -0.15865525F, 0.34573123F, -0.00404970F, 20};
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_NEAR(forward.at(1, i), expected[i], 1e-7) << i;
  const OpRun apart(gelus(x)[1], 1), together(gelus(x)[2], 1);
  for (const OpRun* run : {&apart, &together}) {
    set(*run, 0, {0, 20, -20, 0, 20, -20});
    set(*run, 1, {2, 2, 2, -1, -1, -1});
    run->run_reference();
  }
  EXPECT_EQ(values(apart, 2), (std::vector<float>{1, 2, 0, -0.5F, -1, 0}));
  EXPECT_EQ(values(together, 1), values(apart, 2));
}

TEST(ReferenceEmbedding, AddsARowOfTheTableToThatOfThePlace) {
  const TensorDesc tokens{{1, 3}, ElementType::i32}, table{{2, 2}}, y{{1, 3, 2}};
  const OpRun run(make_op(EmbeddingForward{}, {tokens, table, {{4, 2}}, y}), 1);
  const std::int32_t words[] = {1, -1, 2};  // neither of the last two is a row
  std::memcpy(run.buffer(0).data(), words, sizeof words);
  set(run, 1, {1, 2, 3, 4});
  set(run, 2, {10, 20, 30, 40, 50, 60, 70, 80});
  run.run_reference();
  EXPECT_EQ(values(run, 3), (std::vector<float>{13, 24, 30, 40, 50, 60}));
}

TEST(ReferenceEmbedding, SumsTheGradientsOfEqualTokensAndLeavesNoOtherRowOut) {
  const TensorDesc tokens{{2, 2}, ElementType::i32}, table{{3, 1}}, dy{{2, 2, 1}};
  const OpRun run(make_op(EmbeddingBackward{}, {tokens, dy, table, {{4, 1}}}), 1);
  const std::int32_t words[] = {2, 0, 2, -1};
  std::memcpy(run.buffer(0).data(), words, sizeof words);
  set(run, 1, {1, 2, 4, 8});
  run.run_reference();
  EXPECT_EQ(values(run, 2), (std::vector<float>{2, 0, 5}));
  EXPECT_EQ(values(run, 3), (std::vector<float>{5, 10, 0, 0}));
}

TEST(ReferenceLayerNorm, NormalisesEachRowWithTheBiasedVariance) {
  const TensorDesc x{{2, 2}}, column{{2}}, row{{2}};
  const OpRun run(make_op(LayerNormForward{{1e-5F}}, {x, column, column, x, row, row}), 1);
  set(run, 0, {1, 5, 7, 7});
  set(run, 1, {2, 3});
  set(run, 2, {10, 20});
  run.run_reference();
  EXPECT_EQ(values(run, 4), (std::vector<float>{3, 7}));
  EXPECT_EQ(values(run, 5), (std::vector<float>{4, 0}));
  EXPECT_NEAR(run.at(3, 0, 0), 10 - 2 * 2 / std::sqrt(4.00001), 1e-6);
  EXPECT_NEAR(run.at(3, 0, 1), 20 + 3 * 2 / std::sqrt(4.00001), 2e-6);
  EXPECT_EQ(run.at(3, 1, 0), 10);
}

TEST(ReferenceAttention, ComparesEachHeadByItself) {
  const TensorDesc rows{{1, 2, 2}}, square{{1, 2, 2, 2}};
  const OpRun scores(make_op(AttentionScores{{0.5F}}, {rows, rows, square}), 1);
  set(scores, 0, {1, 2, 3, 4});
  set(scores, 1, {10, 20, 30, 40});
  scores.run_reference();
  EXPECT_EQ(values(scores, 2), (std::vector<float>{5, 15, 15, 45, 20, 40, 40, 80}));
  const OpRun mix(make_op(AttentionMix{}, {square, rows, rows}), 1);
  set(mix, 0, {1, 2, 3, 4, 5, 6, 7, 8});
  set(mix, 1, {1, 10, 100, 1000});
  mix.run_reference();
  EXPECT_EQ(values(mix, 2), (std::vector<float>{201, 6050, 403, 8070}));
  const OpRun transposed(make_op(AttentionMixTransposed{}, {square, rows, rows}), 1);
  set(transposed, 0, {1, 2, 3, 4, 5, 6, 7, 8});
  set(transposed, 1, {1, 10, 100, 1000});
  transposed.run_reference();
  EXPECT_EQ(values(transposed, 2), (std::vector<float>{301, 7050, 402, 8060}));
}

TEST(ReferenceAttention, CausalSoftmaxSeesNoLaterToken) {
  const TensorDesc square{{1, 1, 2, 2}};
  const OpRun all(make_op(AttentionSoftmaxForward{false}, {square, square}), 1);
  const OpRun causal(make_op(AttentionSoftmaxForward{true}, {square, square}), 1);
  for (const OpRun* run : {&all, &causal}) {
    set(*run, 0, {0, std::log(3.0F), std::log(4.0F), 0});
    run->run_reference();
  }
  const float expected[] = {0.25F, 0.75F, 0.8F, 0.2F}, masked[] = {1, 0, 0.8F, 0.2F};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(values(all, 1)[i], expected[i], 1e-6F);
    EXPECT_NEAR(values(causal, 1)[i], masked[i], 1e-6F);
  }
  EXPECT_EQ(causal.at(1, 0, 0, 0, 1), 0) << "exactly";
}

TEST(ReferenceAdd, SumsElementByElement) {
  const TensorDesc x{{3}};
  for (const OpDesc& desc : adds(x)) {
    const float factor = std::get<AddForward>(desc.op).factor;
    const OpRun run(desc, 1);
    set(run, 0, {1, 2, 3});
    set(run, 1, {10, 20, -3});
    run.run_reference();
    EXPECT_EQ(values(run, desc.in_place ? 0 : 2),
              (std::vector<float>{1 + factor * 10, 2 + factor * 20, 3 - factor * 3}));
    EXPECT_EQ(values(run, 1), (std::vector<float>{10, 20, -3}));
  }
}

TEST(ReferenceSoftmaxLoss, IsTheMeanOverTheFullBatchOfMinusLogP) {
  const LossAttributes attributes{8};
  const TensorDesc logits{{2, 2}}, labels{{2}, ElementType::i32};
  const OpRun run(make_op(SoftmaxLossForward{attributes}, {logits, labels, {{1}}, logits}), 1);
  set(run, 0, {0, std::log(3.0F), 1000, 0});
  auto* label = reinterpret_cast<std::int32_t*>(run.buffer(1).data());
  label[0] = 1;
  label[1] = 0;
  run.run_reference();
  EXPECT_NEAR(run.at(3, 0, 0), 0.25, 1e-6);
  EXPECT_NEAR(run.at(3, 0, 1), 0.75, 1e-6);
  EXPECT_NEAR(run.at(3, 1, 0), 1, 1e-6);
  EXPECT_NEAR(run.at(2, 0), -std::log(0.75) / 8, 1e-6);
}

/// A pixel is a row of logits: the same elements in another order.
TEST(ReferenceSoftmaxLoss, OfPixelsIsThatOfAMatrixWithARowForEach) {
  const TensorDesc image{{2, 3, 2, 2}};
  const LossAttributes mean{8};
  const OpRun pixels(pixel_losses(image)[0], 1);
  const TensorDesc rows{{8, 3}}, labels{{8}, ElementType::i32};
  const OpRun matrix(make_op(SoftmaxLossForward{mean}, {rows, labels, {{1}}, rows}), 1);
  for_each_index(image, [&](auto n, auto k, auto h, auto w) {
    matrix.at(0, (n * 2 + h) * 2 + w, k) = pixels.at(0, n, k, h, w);
  });
  matrix.copy_operand(1, pixels, 1);
  pixels.run_reference();
  matrix.run_reference();
  EXPECT_FLOAT_EQ(pixels.at(2, 0) * 6, matrix.at(2, 0) * 8) << "their means are over 6 and 8";
  for_each_index(image, [&](auto n, auto k, auto h, auto w) {
    EXPECT_EQ(pixels.at(3, n, k, h, w), matrix.at(3, (n * 2 + h) * 2 + w, k));
  });
}

TEST(ReferenceUpsample, RepeatsPixelsOrGoesBetweenThem) {
  const std::vector<OpDesc> ops = upsamplings({{1, 1, 1, 2}}, 2);
  const OpRun nearest(ops[0], 1), bilinear(ops[2], 1);
  for (const OpRun* run : {&nearest, &bilinear}) {
    set(*run, 0, {4, 8});
    run->run_reference();
  }
  EXPECT_EQ(values(nearest, 1), (std::vector<float>{4, 4, 8, 8, 4, 4, 8, 8}));
  EXPECT_EQ(values(bilinear, 1), (std::vector<float>{4, 5, 7, 8, 4, 5, 7, 8}));
  const OpRun odd(upsamplings({{1, 1, 2, 1}}, 3)[2], 1);
  set(odd, 0, {0, 3});
  odd.run_reference();
  EXPECT_EQ(values(odd, 1),
            (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3}));
}

TEST(ReferenceSoftmaxLoss, LeavesOutSamplesWithANegativeLabel) {
  const LossAttributes attributes{2};
  const TensorDesc logits{{2, 2}}, labels{{2}, ElementType::i32};
  const OpRun forward(make_op(SoftmaxLossForward{attributes}, {logits, labels, {{1}}, logits}), 1);
  const OpRun backward(make_op(SoftmaxLossBackward{attributes}, {logits, labels, logits}), 2);
  set(forward, 0, {1, 2, 0, std::log(3.0F)});
  for (const OpRun* run : {&forward, &backward}) {
    auto* label = reinterpret_cast<std::int32_t*>(run->buffer(1).data());
    label[0] = -1;
    label[1] = 1;
  }
  forward.run_reference();
  EXPECT_NEAR(forward.at(2, 0), -std::log(0.75) / 2, 1e-6);
  backward.copy_operand(0, forward, 3);
  backward.run_reference();
  EXPECT_EQ(backward.at(2, 0, 0), 0);
  EXPECT_EQ(backward.at(2, 0, 1), 0);
  EXPECT_NEAR(backward.at(2, 1, 0), 0.125, 1e-6);
}

TEST(ReferenceSquaredError, IsTheMeanOverTheFullBatchAndTheElementsOfASample) {
  const TensorDesc x{{2, 3}};
  const LossAttributes attributes{4};
  const OpRun forward(make_op(SquaredErrorForward{attributes}, {x, x, {{1}}}), 1);
  const OpRun backward(make_op(SquaredErrorBackward{attributes}, {x, x, x}), 2);
  for (const OpRun* run : {&forward, &backward}) {
    set(*run, 0, {1, 2, 3, 4, 5, 6});
    set(*run, 1, {1, 0, 3, 4, 5, 2});
    run->run_reference();
  }
  EXPECT_FLOAT_EQ(forward.at(2, 0), (4 + 16) / 12.0F);
  EXPECT_EQ(values(backward, 2), (std::vector<float>{0, 4 / 12.0F, 0, 0, 0, 8 / 12.0F}));
}

TEST(ReferenceCountCorrect, TakesTheFirstOfEqualLogitsAndNoNan) {
  const OpRun run(
      make_op(CountCorrect{}, {{{6, 3}}, {{6}, ElementType::i32}, {{1}, ElementType::i32}}), 1);
  const float nan = std::nanf("");
  const std::int32_t label[] = {1, 0, 1, -1, 0, 2};
  set(run, 0, {0, 2, 1, 5, 5, 1, 5, 5, 1, 9, 0, 0, nan, 1, 0, 1, nan, 7});
  std::copy(std::begin(label), std::end(label),
            reinterpret_cast<std::int32_t*>(run.buffer(1).data()));
  run.run_reference();
  // Right, the first of two, the second of two, masked, NaN, next to a NaN.
  EXPECT_EQ(*reinterpret_cast<const std::int32_t*>(run.buffer(2).data()), 2);
}

TEST(ReferenceSgd, AddsDecayToTheGradientAndMomentumToTheWeight) {
  const TensorDesc w{{1}};
  const SgdUpdate attributes{.momentum = 0.5F, .weight_decay = 0.25F};
  const OpRun run(make_op(attributes, {w, control_block(), w, w}), 1);
  run.control().learning_rate = 0.125F;
  set(run, 0, {3});
  set(run, 2, {4});
  set(run, 3, {8});
  run.run_reference();
  EXPECT_EQ(run.at(3, 0), 0.5F * 8 + (3 + 0.25F * 4));
  EXPECT_EQ(run.at(2, 0), 4 - 0.125F * 8);
}

// The algorithm of the paper step by step in double precision, for some iterations.
TEST(ReferenceAdamw, FollowsThePublishedAlgorithm) {
  const TensorDesc tensor{{2}};
  OpDesc desc = adamw(tensor);
  auto& op = std::get<AdamwUpdate>(desc.op);
  op.beta1 = 0.8F;
  op.beta2 = 0.95F;
  op.epsilon = 1e-3F;
  const OpRun run(desc, 1);
  set(run, 2, {2, -0.5F});
  set(run, 3, {0, 0});
  set(run, 4, {0, 0});
  double w[] = {2, -0.5}, m[] = {0, 0}, v[] = {0, 0};
  for (int t = 1; t <= 5; ++t) {
    const double rate = 0.1 / t;
    const double gradient[] = {0.5 * t, 0.002 - 0.001 * t};
    run.control().iteration = static_cast<std::uint64_t>(t - 1);
    run.control().learning_rate = static_cast<float>(rate);
    set(run, 0, {static_cast<float>(gradient[0]), static_cast<float>(gradient[1])});
    run.run_reference();
    for (int i = 0; i < 2; ++i) {
      w[i] -= rate * 0.01 * w[i];
      m[i] = 0.8 * m[i] + 0.2 * gradient[i];
      v[i] = 0.95 * v[i] + 0.05 * gradient[i] * gradient[i];
      const double m_hat = m[i] / (1 - std::pow(0.8, t)), v_hat = v[i] / (1 - std::pow(0.95, t));
      w[i] -= rate * m_hat / (std::sqrt(v_hat) + 1e-3);
      EXPECT_NEAR(run.at(2, i), w[i], 1e-6) << "iteration " << t;
      EXPECT_NEAR(run.at(3, i), m[i], 1e-6);
      EXPECT_NEAR(run.at(4, i), v[i], 1e-6);
    }
  }
}

OpDesc dropout(std::int64_t batch, std::int64_t first_sample, float rate) {
  const DropoutAttributes attributes{.rate = rate, .random_key = 5};
  const TensorDesc x = blocked(batch, 20, 6, 6);
  return from_sample(
      make_op(DropoutForward{attributes}, {x, control_block(), x, as_type(x, ElementType::u8)}),
      first_sample);
}

TEST(ReferenceDropout, ZeroesTheRateAndScalesTheRest) {
  const OpRun run(dropout(50, 0, 0.25F), 1);
  run.run_reference();
  std::int64_t zeros = 0;
  for_each_index(run.desc().operands[0], [&](auto... index) {
    const float x = run.at(0, index...), y = run.at(2, index...);
    zeros += y == 0 ? 1 : 0;
    EXPECT_TRUE(y == 0 || y == x * (1 / 0.75F));
  });
  const double elements = static_cast<double>(run.desc().operands[0].elements());
  EXPECT_NEAR(static_cast<double>(zeros), elements * 0.25, 5 * std::sqrt(elements * 0.25 * 0.75));
}

TEST(ReferenceDropout, OfSubBatchesIsThatOfTheFullBatch) {
  const OpRun whole(dropout(6, 0, 0.5F), 1), part(dropout(2, 3, 0.5F), 2);
  const std::size_t skipped = part.buffer(0).size() / 2 * 3;
  std::memcpy(part.buffer(0).data(), whole.buffer(0).data() + skipped, part.buffer(0).size());
  whole.run_reference();
  part.run_reference();
  EXPECT_EQ(
      std::memcmp(part.buffer(2).data(), whole.buffer(2).data() + skipped, part.buffer(2).size()),
      0);
}

TEST(ReferenceDropout, DependsOnIterationSeedAndKey) {
  const OpRun base(dropout(2, 0, 0.5F), 1);
  base.run_reference();
  const auto differs = [&](const OpRun& other) {
    other.run_reference();
    return std::memcmp(base.buffer(3).data(), other.buffer(3).data(), base.buffer(3).size()) != 0;
  };
  const OpRun same(dropout(2, 0, 0.5F), 1), later(dropout(2, 0, 0.5F), 1),
      seeded(dropout(2, 0, 0.5F), 1);
  OpDesc other_op = dropout(2, 0, 0.5F);
  std::get<DropoutForward>(other_op.op).random_key = 6;
  later.control().iteration += 1;
  seeded.control().seed += 1;
  EXPECT_FALSE(differs(same));
  EXPECT_TRUE(differs(later));
  EXPECT_TRUE(differs(seeded));
  EXPECT_TRUE(differs(OpRun(other_op, 1)));
}

}  // namespace
}  // namespace tidepool::nn::testing
