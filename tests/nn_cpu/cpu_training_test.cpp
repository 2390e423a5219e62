// Whole programs with the CPU kernels give what the reference kernels give, up to rounding.
#include <gtest/gtest.h>

#include "nn/evaluation_runner.h"
#include "nn/training_fixture.h"

namespace tidepool::nn {
namespace {

struct Outcome {
  std::vector<float> losses;
  EvaluationResult evaluation;
};

Outcome train(const Result<Graph>& graph, const TrainingOptions& options,
              const KernelList& kernels) {
  const std::unique_ptr<SampleSource> source = data_for(*graph, 40);
  const SampleSource& data = *source;
  const auto program = build(graph, options, kernels);
  TrainingSettings settings;
  settings.learning_rate = [](std::int64_t) { return 0.002F; };
  const auto runner = make_runner(program, data, kernels, settings);
  run_reference(program, *runner, 4);
  const auto evaluation = build_evaluation_program(*graph, {.batch = 16}, kernels);
  EXPECT_TRUE(evaluation);
  const auto evaluator = EvaluationRunner::create(*evaluation, kernels, data);
  EXPECT_TRUE(evaluator && (*evaluator)->take_values(*runner));
  run_reference(*evaluation, **evaluator, (*evaluator)->iterations());
  return {runner->losses(), (*evaluator)->result()};
}

void expect_agreement(const Result<Graph>& graph, const TrainingOptions& options) {
  ASSERT_TRUE(graph);
  const Outcome actual = train(graph, options, cpu_kernels());
  const Outcome expected = train(graph, options, reference_kernels());
  ASSERT_EQ(actual.losses.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(actual.losses[i], expected.losses[i], 2e-3F) << "iteration " << i;
  }
  EXPECT_NEAR(actual.evaluation.mean_loss, expected.evaluation.mean_loss, 5e-3);
  EXPECT_NEAR(actual.evaluation.accuracy, expected.evaluation.accuracy, 1.5 / 40);
  EXPECT_EQ(actual.evaluation.samples, 40);
}

class CpuTraining : public ::testing::TestWithParam<Storage> {};

TEST_P(CpuTraining, AgreesWithTheReference) {
  const TrainingOptions sgd{.batch = 10, .storage = GetParam()};
  TrainingOptions adamw = sgd;
  adamw.optimizer = Optimizer::adamw;
  expect_agreement(make_crooked_graph(), sgd);
  expect_agreement(make_tangled_graph(), adamw);
  expect_agreement(build_model("tiny-resnet"), sgd);
  expect_agreement(make_branching_graph(), sgd);
  expect_agreement(make_segmenting_graph(), sgd);
  for (const char* model : {"tiny-mobilenet", "tiny-squeezenet", "tiny-inception", "tiny-vgg-plain",
                            "tiny-fcn", "tiny-unet"}) {
    SCOPED_TRACE(model);
    expect_agreement(build_model(model), sgd);
  }
  expect_agreement(build_model("tiny-transformer"), adamw);
  expect_agreement(build_model("tiny-gpt"), adamw);
  expect_agreement(build_model("tiny-lstm"), adamw);
  expect_agreement(make_recurrent_graph(), adamw);
}

INSTANTIATE_TEST_SUITE_P(Storages, CpuTraining,
                         ::testing::Values(Storage::separate, Storage::in_place));

}  // namespace
}  // namespace tidepool::nn
