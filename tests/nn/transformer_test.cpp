// Models of text: their sizes, tied weights, gradients of whole models, training.
#include "nn/models/transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "nn/data/text.h"
#include "nn/evaluation_runner.h"
#include "nn/training_fixture.h"
#include "nn/whole_gradients.h"
#include "support/sanitized.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

// GPT-2 small: 50257*768 + 1024*768 for tokens and positions; 12 layers of 4 projections
// 4*(768*768 + 768), a branch 768*3072 + 3072 + 3072*768 + 768 and two layer norms 4*768; 2*768 for
// the last layer norm. BERT-base: see transformer.h; 30522*768 + 512*768 + 2*768, the same 12
// layers, and a head of 768*768 + 768 + 2*768 + 30522.
TEST(Transformers, HaveThePublishedNumbersOfParameters) {
  const auto parameters = [](const char* model) {
    return build(build_model(model), {.batch = 1}).learnable_elements();
  };
  EXPECT_EQ(parameters("gpt2-small"), 124'439'808);
  EXPECT_EQ(parameters("bert-base"), 109'514'298 - 2 * 768);
}

TEST(Transformers, TakeAnySequence) {
  for (const ModelInfo& model : transformer_models()) {
    for (const std::int64_t sequence : {std::int64_t{3}, 2 * model.sequence}) {
      const auto graph = build_model(model.name, {.sequence = sequence});
      ASSERT_TRUE(graph) << graph.error().message;
      EXPECT_EQ(graph->values[graph->layers[0].output].type.dims[0], sequence);
      EXPECT_EQ(graph->answers, model.masked ? masked_tokens(sequence) : sequence);
    }
  }
  EXPECT_THAT(build_model("vgg11", {.sequence = 8}).error().message,
              HasSubstr("`sequence` is for models of text; vgg11 takes images"));
  EXPECT_THAT(build_model("tiny-gpt", {.image = {3, 8, 8}}).error().message,
              HasSubstr("tiny-gpt takes tokens, not images"));
}

TEST(Transformers, UpdateATiedWeightOnceWithTheSumOfItsGradients) {
  const auto program = build(build_model("tiny-gpt"), {.batch = 6, .sub_batch = 4});
  const Program& ir = program.program;
  const TensorId table = find_tensor(ir, "embedding.table");
  const auto accesses = [&](AccessMode mode) {
    return std::count_if(ir.ops.begin(), ir.ops.end(), [&](const Op& op) {
      return std::any_of(op.accesses.begin(), op.accesses.end(), [&](const Access& access) {
        return access.tensor == table && access.mode == mode;
      });
    });
  };
  EXPECT_EQ(accesses(AccessMode::read), 2 * 3) << "embedding, output, its gradient; two rounds";
  EXPECT_EQ(accesses(AccessMode::update), 1);
  const OpId update = find_op(ir, "embedding.table.update");
  for (const char* name :
       {"embedding.table.tie1@0", "embedding.table.accumulate@1", "output.backward_data@1"}) {
    ASSERT_NE(find_op(ir, name), kNone) << name;
    EXPECT_LT(find_op(ir, name), update) << name;
  }
  const Op& tie = ir.ops[find_op(ir, "embedding.table.tie1@0")];
  EXPECT_EQ(ir.tensors[tie.accesses[0].tensor].name, "grad:embedding.table@0");
  EXPECT_EQ(ir.tensors[tie.accesses[1].tensor].name, "grad:embedding.table.output@0");
  // The second round's embedding adds to the gradient of the output, and that goes to the sum.
  EXPECT_EQ(find_op(ir, "embedding.table.tie1@1"), kNone);
  EXPECT_EQ(find_tensor(ir, "grad:embedding.table@1"), kNone);
  const Op& sum = ir.ops[find_op(ir, "embedding.table.accumulate@1")];
  EXPECT_EQ(ir.tensors[sum.accesses[0].tensor].name, "grad:embedding.table@0");
  EXPECT_EQ(ir.tensors[sum.accesses[1].tensor].name, "grad:embedding.table.output@1");
}

// Planners see the square matrices, and nothing but updates of weights is kept from being
// recomputed.
TEST(Transformers, AttentionIsMadeOfOpsThatCanBeRecomputed) {
  const auto program = build(build_model("tiny-gpt"), {.batch = 2, .storage = Storage::separate});
  const Program& ir = program.program;
  for (const char* name : {"layer1.attention.scores", "layer1.attention.probabilities"}) {
    ASSERT_NE(find_tensor(ir, name), kNone) << name;
    EXPECT_EQ(program.tensors[find_tensor(ir, name)].dims, (std::vector<std::int64_t>{2, 2, 8, 8}));
  }
  for (const Op& op : ir.ops) {
    const bool changes_state = op.phase == Phase::update || op.place == OpPlace::host;
    EXPECT_EQ(op.recomputable, !changes_state) << op.name;
  }
}

struct Whole {
  const char* model;
  Storage storage;
};

std::string whole_name(const ::testing::TestParamInfo<Whole>& info) {
  const std::string name = std::string(info.param.model) == "tiny-gpt" ? "Decoder" : "Encoder";
  return name + (info.param.storage == Storage::separate ? "Separate" : "InPlace");
}

class GradientsOfTransformers : public ::testing::TestWithParam<Whole> {};

// Weights are larger than at the start of a training, so that no gradient drowns in rounding.
TEST_P(GradientsOfTransformers, MatchFiniteDifferences) {
  const auto program = build(build_model(GetParam().model),
                             {.batch = 6, .storage = GetParam().storage, .weight_decay = 0});
  const auto data = data_for(program, 32);
  TrainingSettings settings;
  settings.learning_rate = [](std::int64_t) { return 0.0F; };
  const auto runner = make_runner(program, *data, reference_kernels(), settings);
  for (const Parameter& parameter : program.parameters) {
    if (parameter.initialiser != Initialiser::small_normal) continue;
    std::vector<float> larger = floats(runner->value(parameter.tensor));
    for (float& weight : larger) weight *= 10;
    runner->store(parameter.tensor, reinterpret_cast<const std::byte*>(larger.data()));
  }
  expect_whole_gradients(program, *runner, 2e-4, [](const Parameter& parameter) {
    // Softmax takes no notice of what all scores of a row have.
    return parameter.name.find(".key.bias") != std::string::npos;
  });
}

INSTANTIATE_TEST_SUITE_P(Models, GradientsOfTransformers,
                         ::testing::Values(Whole{"tiny-gpt", Storage::in_place},
                                           Whole{"tiny-gpt", Storage::separate},
                                           Whole{"tiny-transformer", Storage::in_place},
                                           Whole{"tiny-transformer", Storage::separate}),
                         whole_name);

TEST(TrainingOfTransformers, IsTheSameInBothStoragesAndInRounds) {
  for (const char* model : {"tiny-gpt", "tiny-transformer"}) {
    SCOPED_TRACE(model);
    const auto losses = [&](Storage storage, std::int64_t sub_batch, const KernelList& kernels) {
      const auto program = build(build_model(model),
                                 {.batch = 6, .sub_batch = sub_batch, .storage = storage}, kernels);
      const auto data = data_for(program, 32);
      const auto runner = make_runner(program, *data, kernels);
      run_reference(program, *runner, 3);
      return runner->losses();
    };
    const auto whole = losses(Storage::in_place, 6, reference_kernels());
    EXPECT_EQ(losses(Storage::separate, 6, reference_kernels()), whole);
    EXPECT_EQ(losses(Storage::in_place, 6, blocked_reference_kernels()), whole);
    const auto rounds = losses(Storage::in_place, 4, reference_kernels());
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(rounds[i], whole[i], 1e-5F);
  }
}

TEST(TrainingOfTransformers, LossFallsOnText) {
  constexpr auto kIterations = tidepool::testing::usual_or<std::size_t>(60, 20);
  for (const char* model : {"tiny-gpt", "tiny-transformer"}) {
    SCOPED_TRACE(model);
    const auto graph = build_model(model);
    const auto program = build(graph, {.batch = 16, .optimizer = Optimizer::adamw});
    const auto data = load_text(Split::train, {8, graph->answers < 8});
    ASSERT_TRUE(data) << data.error().message;
    TrainingSettings settings;
    settings.learning_rate = [](std::int64_t) { return 0.01F; };
    const auto runner = make_runner(program, **data, reference_kernels(), settings);
    run_reference(program, *runner, kIterations);
    const std::vector<float>& losses = runner->losses();
    EXPECT_NEAR(losses[0], std::log(256.0F), 0.2F) << "nothing is known yet";
    float last = 0;
    for (std::size_t i = kIterations - 5; i < kIterations; ++i) last += losses[i] / 5;
    EXPECT_LT(last, tidepool::testing::usual_or(3.6F, 5.0F));

    const auto evaluation = build_evaluation_program(*graph, {.batch = 50}, reference_kernels());
    ASSERT_TRUE(evaluation);
    const auto test = load_text(Split::test, {8, graph->answers < 8});
    ASSERT_TRUE(test);
    const auto evaluator = EvaluationRunner::create(*evaluation, reference_kernels(), **test);
    ASSERT_TRUE(evaluator) << evaluator.error().message;
    ASSERT_TRUE((*evaluator)->take_values(*runner));
    run_reference(*evaluation, **evaluator, 4);
    const EvaluationResult result = (*evaluator)->result();
    EXPECT_EQ(result.samples, 200);
    EXPECT_EQ(result.answers, graph->answers);
    EXPECT_LT(result.mean_loss, tidepool::testing::usual_or(3.8, 5.2)) << "a mean over tokens";
    EXPECT_GT(result.accuracy, 0.05) << "spaces are common";
    EXPECT_LT(result.accuracy, 0.6);
  }
}

/// Finds what a model makes of one sample, by its evaluation.
double loss_of(const TrainingProgram& program, const ProgramRunner& trained,
               const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& labels) {
  class One final : public SampleSource {
   public:
    One(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& labels)
        : values_{tokens, labels} {}
    [[nodiscard]] std::string name() const override { return "one"; }
    [[nodiscard]] std::int64_t size() const override { return 1; }
    [[nodiscard]] std::vector<Field> fields() const override {
      const ValueType type{{static_cast<std::int64_t>(values_[0].size())}, ElementType::i32};
      return {{"tokens", type, 256}, {"labels", type, 256}};
    }
    void read(std::size_t field, std::int64_t /*sample*/, std::byte* to) const override {
      std::memcpy(to, values_[field].data(), values_[field].size() * sizeof(std::int32_t));
    }

   private:
    std::vector<std::int32_t> values_[2];
  };
  const One data(tokens, labels);
  const auto evaluator = EvaluationRunner::create(program, reference_kernels(), data);
  EXPECT_TRUE(evaluator && (*evaluator)->take_values(trained));
  run_reference(program, **evaluator, 1);
  return (*evaluator)->result().mean_loss;
}

TEST(Decoders, SeeNoLaterTokenAndEncodersDo) {
  for (const char* model : {"tiny-gpt", "tiny-lstm", "tiny-transformer"}) {
    const auto graph = build_model(model);
    const auto program = build(graph, {.batch = 1});
    const auto data = data_for(program, 4);
    const auto runner = make_runner(program, *data);
    const auto evaluation = build_evaluation_program(*graph, {.batch = 1}, reference_kernels());
    ASSERT_TRUE(evaluation);
    const std::vector<std::int32_t> labels = {-1, -1, 9, -1, -1, -1, -1, -1};
    const auto loss = [&](const std::vector<std::int32_t>& tokens) {
      return loss_of(*evaluation, *runner, tokens, labels);
    };
    const double first = loss({1, 2, 3, 4, 5, 6, 7, 8});
    EXPECT_NE(loss({1, 7, 3, 4, 5, 6, 7, 8}), first);
    const bool same = loss({1, 2, 3, 9, 9, 9, 9, 9}) == first;
    EXPECT_EQ(same, std::string(model) != "tiny-transformer") << model;
  }
}

}  // namespace
}  // namespace tidepool::nn
