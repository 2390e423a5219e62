// Evaluation programs and their runner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/load_profile.h"
#include "nn/evaluation_runner.h"
#include "nn/training_fixture.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "runtime/executor.h"
#include "support/fake_device.h"
#include "support/repeatable.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

/// Samples of the same classes that training does not see.
class HeldOut final : public Dataset {
 public:
  HeldOut(const Dataset& all, std::int64_t first) : all_(all), first_(first) {}
  [[nodiscard]] std::string name() const override { return "held out"; }
  [[nodiscard]] std::int64_t size() const override { return all_.size() - first_; }
  [[nodiscard]] ImageShape image() const override { return all_.image(); }
  [[nodiscard]] std::int64_t classes() const override { return all_.classes(); }
  void fill(std::int64_t sample, float* to) const override { all_.fill(first_ + sample, to); }
  [[nodiscard]] std::int32_t label(std::int64_t sample) const override {
    return all_.label(first_ + sample);
  }

 private:
  const Dataset& all_;
  std::int64_t first_;
};

TrainingProgram build_evaluation(const Result<Graph>& graph, const TrainingOptions& options,
                                 const KernelList& kernels = reference_kernels()) {
  EXPECT_TRUE(graph) << graph.error().message;
  auto program = build_evaluation_program(*graph, options, kernels);
  EXPECT_TRUE(program) << program.error().message;
  return std::move(*program);
}

/// Of the values `trained` has now.
EvaluationResult evaluate(const Result<Graph>& graph, const TrainingOptions& options,
                          const Dataset& data, const ProgramRunner& trained,
                          const KernelList& kernels = reference_kernels()) {
  const TrainingProgram program = build_evaluation(graph, options, kernels);
  const auto runner = EvaluationRunner::create(program, kernels, data);
  EXPECT_TRUE(runner) << runner.error().message;
  const auto taken = (*runner)->take_values(trained);
  EXPECT_TRUE(taken) << taken.error().message;
  run_reference(program, **runner, (*runner)->iterations());
  return (*runner)->result();
}

TEST(EvaluationProgram, OfEveryModelOnlyReadsWeightsAndStatistics) {
  for (const ModelInfo& model : models()) {
    if (model.clusters) continue;  // has none
    for (const Storage storage : {Storage::separate, Storage::in_place}) {
      for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
        const TrainingOptions options{.batch = 2, .storage = storage};
        const auto program = build_evaluation(build_model(model.name), options, *kernels);
        for (const Op& op : program.program.ops) {
          EXPECT_FALSE(op.random && op.place == OpPlace::device) << op.name;
          for (const Access& access : op.accesses) {
            EXPECT_TRUE(access.mode == AccessMode::read ||
                        !program.program.tensors[access.tensor].persistent)
                << op.name;
          }
        }
        for (const Tensor& tensor : program.program.tensors) {
          EXPECT_NE(tensor.kind, TensorKind::optimizer_state) << tensor.name;
          EXPECT_NE(tensor.kind, TensorKind::gradient) << tensor.name;
        }
        EXPECT_EQ(program.learnable_elements(),
                  build(build_model(model.name), options, *kernels).learnable_elements());
      }
    }
  }
}

TEST(EvaluationProgram, NeedsLittleMemory) {
  const auto peak = [](const TrainingProgram& program) {
    const AccessIndex index(program.program);
    return load_profile(program.program, index, 64, least_workspace_algorithms(program.program))
        .peak;
  };
  const auto graph = build_model("resnet50-cifar");
  EXPECT_LT(peak(build_evaluation(graph, {.batch = 100})), peak(build(graph, {.batch = 100})) / 5);
}

TEST(Evaluation, AccuracyOnUnseenSamplesRisesWithTraining) {
  const SyntheticDataset all({3, 8, 8}, 4, 600);
  const HeldOut unseen(all, 500);
  const auto graph = build_model("tiny-resnet", {.image = {3, 8, 8}, .classes = 4});
  const auto program = build(graph, {.batch = 16});
  TrainingSettings settings;
  settings.learning_rate = [](std::int64_t) { return 0.02F; };
  const auto runner = make_runner(program, all, reference_kernels(), settings);
  const EvaluationResult before = evaluate(graph, {.batch = 64}, unseen, *runner);
  run_reference(program, *runner, 15);
  const EvaluationResult after = evaluate(graph, {.batch = 64}, unseen, *runner);
  EXPECT_EQ(after.samples, 100);
  EXPECT_LT(before.accuracy, 0.5);
  EXPECT_GT(after.accuracy, 0.8);
  EXPECT_LT(after.mean_loss, 0.7 * before.mean_loss);
}

// A last batch that is not full counts its samples only, whatever the layout and storage.
TEST(Evaluation, DoesNotDependOnTheBatchSize) {
  const SyntheticDataset data({3, 9, 8}, 4, 50);
  for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
    const auto graph = make_tangled_graph();
    const auto program = build(graph, {.batch = 10}, *kernels);
    const auto runner = make_runner(program, data, *kernels);
    run_reference(program, *runner, 5);
    const EvaluationResult whole = evaluate(graph, {.batch = 50}, data, *runner, *kernels);
    EXPECT_EQ(whole.samples, 50);
    EXPECT_NEAR(whole.accuracy * 50, std::round(whole.accuracy * 50), 1e-9);
    for (const Storage storage : {Storage::separate, Storage::in_place}) {
      for (const std::int64_t batch : {1, 16, 64}) {
        const TrainingOptions options{.batch = batch, .storage = storage};
        const EvaluationResult parts = evaluate(graph, options, data, *runner, *kernels);
        EXPECT_EQ(parts.samples, 50);
        EXPECT_EQ(parts.accuracy, whole.accuracy) << "batch " << batch;
        EXPECT_NEAR(parts.mean_loss, whole.mean_loss, 1e-5 * whole.mean_loss) << "batch " << batch;
      }
    }
  }
}

TEST(Evaluation, RepeatsWithNewValues) {
  const SyntheticDataset data({3, 8, 8}, 10, 40);
  const auto graph = build_model("mlp", {.image = {3, 8, 8}});
  const auto training = build(graph, {.batch = 10});
  const auto trained = make_runner(training, data);
  const auto program = build_evaluation(graph, {.batch = 16});
  auto runner = EvaluationRunner::create(program, reference_kernels(), data);
  ASSERT_TRUE(runner);
  EXPECT_EQ((*runner)->iterations(), 3);
  EXPECT_EQ((*runner)->result().samples, 0);
  ASSERT_TRUE((*runner)->take_values(*trained));
  run_reference(program, **runner, 2);
  EXPECT_EQ((*runner)->result().samples, 32);
  run_reference(program, **runner, 3);
  const EvaluationResult before = (*runner)->result();
  run_reference(training, *trained, 20);
  ASSERT_TRUE((*runner)->take_values(*trained));
  run_reference(program, **runner, 6);
  EXPECT_EQ((*runner)->result().samples, 40);
  EXPECT_LT((*runner)->result().mean_loss, before.mean_loss);
}

TEST(Evaluation, InsideABudgetGivesTheSameNumbers) {
  constexpr Bytes kAlignment = 64;
  const SyntheticDataset data({3, 8, 8}, 10, 30);
  const auto graph = build_model("tiny-resnet");
  const auto training = build(graph, {.batch = 8});
  const auto trained = make_runner(training, data);
  auto program = build_evaluation(graph, {.batch = 8});
  const EvaluationResult expected = evaluate(graph, {.batch = 8}, data, *trained);
  Machine machine;
  machine.set_alignment(kAlignment);
  machine.to_host() = machine.to_device() = LinkSpeed{1e9, Nanos{1000}};
  machine.compute = {1e11, 1e10, Nanos{1000}, 1, 0};
  apply_cost_model(machine, program.program);
  const Bytes smallest = smallest_budget(program.program, kAlignment).bytes;
  for (const PlannerInfo& info : planner_list()) {
    for (const Bytes budget : {smallest, 2 * smallest}) {
      SCOPED_TRACE(std::string(info.name) + " in " + std::to_string(budget));
      FixedWorkload workload(program.program);
      const auto planned = make_plan(*info.make(), workload, machine, {budget, 0},
                                     tidepool::testing::repeatable(1, 100, info.name));
      if (!planned && info.name == "none") continue;
      ASSERT_TRUE(planned) << planned.error().message;
      auto runner = EvaluationRunner::create(program, reference_kernels(), data);
      ASSERT_TRUE(runner && (*runner)->take_values(*trained));
      FakeDevice device(FakeScript{});
      Executor executor(program.program, planned->lowered.plan, device, **runner);
      executor.enter();
      executor.run((*runner)->iterations());
      executor.exit();
      EXPECT_LE(executor.arena_peak(), budget);
      EXPECT_THAT(device.races(), ::testing::IsEmpty());
      EXPECT_EQ((*runner)->result().mean_loss, expected.mean_loss);
      EXPECT_EQ((*runner)->result().accuracy, expected.accuracy);
    }
  }
}

TEST(EvaluationRunner, RefusesWhatDoesNotFit) {
  const SyntheticDataset data({3, 8, 8}, 10, 40);
  const auto graph = build_model("tiny-vgg");
  const auto training = build(graph, {.batch = 8});
  const auto program = build_evaluation(graph, {.batch = 8});
  const auto wrong = EvaluationRunner::create(training, reference_kernels(), data);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("tiny-vgg is a program for training"));
  const auto also_wrong = TrainingRunner::create(program, reference_kernels(), data, {});
  ASSERT_FALSE(also_wrong);
  EXPECT_THAT(also_wrong.error().message, HasSubstr("is a program for evaluation"));

  auto runner = EvaluationRunner::create(program, reference_kernels(), data);
  ASSERT_TRUE(runner);
  const auto refusal = [&](const Result<Graph>& other, const KernelList& kernels) {
    const auto other_program = build(other, {.batch = 8}, kernels);
    const auto taken = (*runner)->take_values(*make_runner(other_program, data, kernels));
    EXPECT_FALSE(taken);
    return taken ? "" : taken.error().message;
  };
  EXPECT_THAT(refusal(build_model("tiny-resnet"), reference_kernels()),
              HasSubstr("needs 'conv1_1.weight', which tiny-resnet does not have"));
  EXPECT_THAT(refusal(graph, blocked_reference_kernels()),
              HasSubstr("'conv1_1.weight', which tiny-vgg has in another shape or layout"));
}

}  // namespace
}  // namespace tidepool::nn
