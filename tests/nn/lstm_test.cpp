// LSTM: its reference kernels against other ways to work them out, what its layer makes of a
// program, and models of characters on real text.
#include "nn/layers/lstm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "nn/data/text.h"
#include "nn/evaluation_runner.h"
#include "nn/kernel_cases.h"
#include "nn/kernel_testing.h"
#include "nn/training_fixture.h"
#include "nn/whole_gradients.h"
#include "support/sanitized.h"

namespace tidepool::nn {
namespace {

using testing::expect_close;
using testing::for_each_index;
using ::testing::HasSubstr;
using testing::in_place;
using testing::lstms;
using testing::make_op;
using testing::OpRun;

/// The ops of `lstms` by name.
enum : std::size_t { kForward, kData, kDataInPlace, kWeights };

/// One input, one cell, so many steps.
OpRun small_lstm(std::initializer_list<float> x, const std::array<float, 4>& input_weights,
                 const std::array<float, 4>& biases) {
  OpRun run(lstms({1, static_cast<std::int64_t>(x.size()), 1, 1})[kForward], 1);
  std::copy(x.begin(), x.end(), run.floats(0));
  std::copy(input_weights.begin(), input_weights.end(), run.floats(1));
  std::fill_n(run.floats(2), 4, 0.0F);
  std::copy(biases.begin(), biases.end(), run.floats(3));
  run.run_reference();
  return run;
}

TEST(ReferenceLstm, AddsUpItsInputsWithAllGatesOpen) {
  const OpRun run = small_lstm({0.5F, -2, 1}, {0, 0, 1, 0}, {100, 100, 0, 100});
  const double sums[] = {std::tanh(0.5), std::tanh(0.5) + std::tanh(-2.0),
                         std::tanh(0.5) + std::tanh(-2.0) + std::tanh(1.0)};
  for (std::int64_t t = 0; t < 3; ++t) {
    EXPECT_NEAR(run.at(5, 0, t, 4), sums[t], 1e-6) << "the cell";
    EXPECT_NEAR(run.at(4, 0, t, 0), std::tanh(sums[t]), 1e-6);
  }
}

TEST(ReferenceLstm, EachGateClosesWhatItIsFor) {
  const OpRun input = small_lstm({0.5F, -2}, {0, 0, 1, 0}, {-100, 100, 0, 100});
  const OpRun forget = small_lstm({0.5F, -2}, {0, 0, 1, 0}, {100, -100, 0, 100});
  const OpRun output = small_lstm({0.5F, -2}, {0, 0, 1, 0}, {100, 100, 0, -100});
  EXPECT_NEAR(input.at(5, 0, 1, 4), 0, 1e-6) << "nothing came in";
  EXPECT_NEAR(forget.at(5, 0, 1, 4), std::tanh(-2.0), 1e-6) << "only the last input is there";
  EXPECT_NEAR(output.at(5, 0, 1, 4), std::tanh(0.5) + std::tanh(-2.0), 1e-6);
  EXPECT_NEAR(output.at(4, 0, 1, 0), 0, 1e-6);
}

/// The equations again, gate by gate for all cells of a step; sigmoids by way of tanh.
TEST(ReferenceLstm, FollowsItsEquations) {
  const OpRun run(lstms({3, 5, 4, 6})[kForward], 7);
  run.run_reference();
  constexpr std::int64_t kHidden = 6;
  using Vector = std::array<double, kHidden>;
  for (std::int64_t n = 0; n < 3; ++n) {
    Vector y{}, c{};
    for (std::int64_t t = 0; t < 5; ++t) {
      std::array<Vector, 4> gates{};
      for (std::int64_t gate = 0; gate < 4; ++gate) {
        for (std::int64_t j = 0; j < kHidden; ++j) {
          const std::int64_t row = gate * kHidden + j;
          double sum = static_cast<double>(run.at(3, row));
          for (std::int64_t k = 0; k < kHidden; ++k) {
            sum += static_cast<double>(run.at(2, row, k)) * y[static_cast<std::size_t>(k)];
          }
          for (std::int64_t k = 0; k < 4; ++k) {
            sum += static_cast<double>(run.at(1, row, k)) * static_cast<double>(run.at(0, n, t, k));
          }
          gates[static_cast<std::size_t>(gate)][static_cast<std::size_t>(j)] =
              gate == 2 ? std::tanh(sum) : 0.5 + 0.5 * std::tanh(sum / 2);
        }
      }
      for (std::size_t j = 0; j < kHidden; ++j) {
        c[j] = gates[1][j] * c[j] + gates[0][j] * gates[2][j];
        y[j] = gates[3][j] * std::tanh(c[j]);
        EXPECT_NEAR(run.at(4, n, t, static_cast<std::int64_t>(j)), y[j], 1e-6);
      }
    }
  }
}

/// All three ops on the same numbers, with gradients of y that are random.
struct Passes {
  OpRun forward, data, weights;

  explicit Passes(const std::vector<OpDesc>& ops)
      : forward(ops[kForward], 1), data(ops[kData], 2), weights(ops[kWeights], 3) {
    forward.run_reference();
    data.copy_operand(1, forward, 1);
    data.copy_operand(2, forward, 2);
    data.copy_operand(3, forward, 5);
    data.run_reference();
    weights.copy_operand(0, forward, 0);
    weights.copy_operand(1, forward, 4);
    weights.copy_operand(2, data, 4);
    weights.run_reference();
  }

  /// Sum of y times its gradient.
  [[nodiscard]] double value() const {
    forward.run_reference();
    double sum = 0;
    for_each_index(forward.desc().operands[4], [&](auto... index) {
      sum +=
          static_cast<double>(forward.at(4, index...)) * static_cast<double>(data.at(0, index...));
    });
    return sum;
  }

  void expect_gradient(std::size_t of, const OpRun& backward, std::size_t gradient) const {
    constexpr double kStep = 1e-2;
    for_each_index(forward.desc().operands[of], [&](auto... index) {
      float& element = forward.at(of, index...);
      const float middle = element;
      element = middle + static_cast<float>(kStep);
      const double above = value();
      element = middle - static_cast<float>(kStep);
      const double below = value();
      element = middle;
      EXPECT_NEAR(backward.at(gradient, index...), (above - below) / (2 * kStep), 2e-4)
          << "operand " << of;
    });
  }
};

TEST(ReferenceLstm, BackwardMatchesFiniteDifferences) {
  for (const testing::LstmCase& shape :
       {testing::LstmCase{2, 4, 3, 5}, testing::LstmCase{1, 1, 2, 3}}) {
    const Passes passes(lstms(shape));
    passes.expect_gradient(0, passes.data, 5);
    passes.expect_gradient(1, passes.weights, 3);
    passes.expect_gradient(2, passes.weights, 4);
    passes.expect_gradient(3, passes.weights, 5);
  }
}

TEST(ReferenceLstm, InPlaceTheGatesTurnIntoTheirGradients) {
  const std::vector<OpDesc> ops = lstms({2, 4, 3, 5});
  const Passes passes(ops);
  const OpRun turned(ops[kDataInPlace], 4);
  for (const std::size_t operand : {0U, 1U, 2U}) turned.copy_operand(operand, passes.data, operand);
  turned.copy_operand(3, passes.forward, 5);
  turned.run_reference();
  expect_close(turned, passes.data, 0, 0);
  for_each_index(ops[kForward].operands[4], [&](auto n, auto t, auto, auto) {
    for (std::int64_t g = 0; g < 4 * 5; ++g) {
      EXPECT_EQ(turned.at(3, n, t, g), passes.data.at(4, n, t, g));
    }
    for (std::int64_t j = 0; j < 5; ++j) {
      EXPECT_EQ(turned.at(3, n, t, 4 * 5 + j), passes.forward.at(5, n, t, 4 * 5 + j));
    }
  });
  for_each_index(ops[kForward].operands[0], [&](auto... index) {
    EXPECT_EQ(turned.at(4, index...), passes.data.at(5, index...));
  });
}

TEST(LstmLayer, TakesSequencesOfVectors) {
  EXPECT_EQ(infer_type(Lstm{5}, {ValueType{{7, 3}}}), (ValueType{{7, 5}}));
  EXPECT_THAT(infer_type(Lstm{5}, {ValueType{{7}}}).error().message,
              HasSubstr("a sequence of vectors, not 7"));
  EXPECT_THAT(infer_type(Lstm{0}, {ValueType{{7, 3}}}).error().message,
              HasSubstr("cannot have 0 cells"));
  EXPECT_THAT(infer_type(Lstm{5}, {}).error().message, HasSubstr("takes 1 input"));
}

TEST(LstmLayer, IsOneOpForwardAndTwoBackwardThatCanAllBeRecomputed) {
  for (const Storage storage : {Storage::separate, Storage::in_place}) {
    const auto program = build(build_model("tiny-lstm"), {.batch = 3, .storage = storage});
    const Program& ir = program.program;
    for (const char* name : {"lstm2.forward", "lstm2.backward_data", "lstm2.backward_weights"}) {
      const OpId op = find_op(ir, name);
      ASSERT_NE(op, kNone) << name;
      EXPECT_TRUE(ir.ops[op].recomputable);
      EXPECT_GT(ir.ops[op].flops, 0);
    }
    EXPECT_EQ(program.tensors[find_tensor(ir, "lstm2.reserve")].dims,
              (std::vector<std::int64_t>{3, 8, 80}));
    EXPECT_EQ(find_tensor(ir, "grad:lstm2.gates") == kNone, storage == Storage::in_place);
  }
}

// Its backward pass reads what it made: a dropout behind it must not work in place.
TEST(LstmLayer, KeepsItsOutput) {
  const auto program = build(make_recurrent_graph(), {.batch = 3});
  EXPECT_NE(find_tensor(program.program, "drop1.out"), kNone) << "behind an LSTM";
  EXPECT_EQ(find_tensor(program.program, "drop2.out"), kNone) << "behind a sum";
}

TEST(TrainingOfLstms, IsTheSameInBothStoragesAndInRounds) {
  const auto losses = [](const Result<Graph>& graph, Storage storage, std::int64_t sub_batch,
                         const KernelList& kernels) {
    const auto program =
        build(graph, {.batch = 6, .sub_batch = sub_batch, .storage = storage}, kernels);
    const auto data = data_for(program, 32);
    const auto runner = make_runner(program, *data, kernels);
    run_reference(program, *runner, 3);
    return runner->losses();
  };
  for (const auto& graph : {build_model("tiny-lstm"), make_recurrent_graph()}) {
    ASSERT_TRUE(graph);
    SCOPED_TRACE(graph->name);
    const auto whole = losses(graph, Storage::in_place, 6, reference_kernels());
    EXPECT_EQ(losses(graph, Storage::separate, 6, reference_kernels()), whole);
    EXPECT_EQ(losses(graph, Storage::in_place, 6, blocked_reference_kernels()), whole);
    const auto rounds = losses(graph, Storage::in_place, 4, reference_kernels());
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(rounds[i], whole[i], 1e-5F);
  }
}

TEST(TrainingOfLstms, GradientsOfAWholeModelMatchFiniteDifferences) {
  const auto program = build(make_recurrent_graph(), {.batch = 5, .weight_decay = 0});
  const auto data = data_for(program, 32);
  TrainingSettings settings;
  settings.learning_rate = [](std::int64_t) { return 0.0F; };
  const auto runner = make_runner(program, *data, reference_kernels(), settings);
  for (const Parameter& parameter : program.parameters) {
    std::vector<float> larger = floats(runner->value(parameter.tensor));
    const bool small = parameter.initialiser == Initialiser::small_normal;
    for (float& weight : larger) weight *= small ? 20.0F : 2.0F;
    runner->store(parameter.tensor, reinterpret_cast<const std::byte*>(larger.data()));
  }
  expect_whole_gradients(program, *runner, 5e-4);
}

TEST(TrainingOfLstms, LossFallsOnText) {
  constexpr auto kIterations = tidepool::testing::usual_or<std::size_t>(100, 20);
  const auto graph = build_model("tiny-lstm");
  const auto program = build(graph, {.batch = 16, .optimizer = Optimizer::adamw});
  const auto data = load_text(Split::train, {8, false});
  ASSERT_TRUE(data) << data.error().message;
  TrainingSettings settings;
  settings.learning_rate = [](std::int64_t) { return 0.02F; };
  const auto runner = make_runner(program, **data, reference_kernels(), settings);
  run_reference(program, *runner, kIterations);
  const std::vector<float>& losses = runner->losses();
  EXPECT_NEAR(losses[0], std::log(256.0F), 0.2F) << "nothing is known yet";
  float last = 0;
  for (std::size_t i = kIterations - 5; i < kIterations; ++i) last += losses[i] / 5;
  EXPECT_LT(last, tidepool::testing::usual_or(3.3F, 5.0F));

  const auto evaluation = build_evaluation_program(*graph, {.batch = 50}, reference_kernels());
  ASSERT_TRUE(evaluation);
  const auto test = load_text(Split::test, {8, false});
  ASSERT_TRUE(test);
  const auto evaluator = EvaluationRunner::create(*evaluation, reference_kernels(), **test);
  ASSERT_TRUE(evaluator) << evaluator.error().message;
  ASSERT_TRUE((*evaluator)->take_values(*runner));
  run_reference(*evaluation, **evaluator, 4);
  const EvaluationResult result = (*evaluator)->result();
  EXPECT_EQ(result.samples, 200);
  EXPECT_EQ(result.answers, 8);
  EXPECT_LT(result.mean_loss, tidepool::testing::usual_or(3.8, 5.2)) << "a mean over characters";
  EXPECT_GT(result.accuracy, 0.05) << "spaces are common";
  EXPECT_LT(result.accuracy, 0.6);
}

// Four gates of width inputs, width cells and a bias in each layer; the tables; the output.
TEST(CharRnn, HasTheNumbersOfParametersOfItsLayers) {
  const auto parameters = [](const char* model) {
    return build(build_model(model), {.batch = 1}).learnable_elements();
  };
  EXPECT_EQ(parameters("char-lstm"),
            (256 + 100) * 512 + 3 * 4 * 512 * (512 + 512 + 1) + 256 * 512 + 256);
  EXPECT_EQ(parameters("tiny-lstm"), (256 + 8) * 16 + 3 * 4 * 16 * (16 + 16 + 1) + 256 * 16 + 256);
}

TEST(CharRnn, TakesAnySequence) {
  for (const std::int64_t sequence : {3, 200}) {
    const auto graph = build_model("char-lstm", {.sequence = sequence});
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_EQ(graph->answers, sequence);
  }
}

}  // namespace
}  // namespace tidepool::nn
