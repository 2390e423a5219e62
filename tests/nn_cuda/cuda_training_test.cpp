// Whole trainings on a GPU: up to rounding those of the reference kernels, and inside a budget bit
// for bit those without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "device/cuda/cuda_device.h"
#include "ir/load_profile.h"
#include "nn/kernels/cuda/cuda.h"
#include "nn/training_fixture.h"
#include "planners/none.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "runtime/executor.h"
#include "runtime/profiler.h"
#include "support/cuda.h"
#include "support/standin_seed.h"

namespace tidepool::nn {
namespace {

using tidepool::testing::is_of_this_run;

constexpr Bytes kAlignment = 512;

Machine machine_of_tests() {
  Machine machine;
  machine.set_alignment(kAlignment);
  machine.to_host() = machine.to_device() = LinkSpeed{20e9, Nanos{5000}};
  machine.compute = {1e13, 1e12, Nanos{3000}, 1, 0};
  return machine;
}

Planned plan(const TrainingProgram& training, Planner& planner, Bytes budget) {
  FixedWorkload workload(training.program);
  PlannerOptions options;
  options.evaluation_limit = 200;  // any plan will do
  options.may.algorithms = false;  // each has bits of its own
  options.may.streaming = true;
  auto planned = make_plan(planner, workload, machine_of_tests(), {budget, 0}, options);
  EXPECT_TRUE(planned) << planned.error().message;
  return std::move(*planned);
}

/// `per_graph` 0: without graphs.
void run(const TrainingProgram& training, const Planned& planned, OpRunner& runner,
         std::int64_t iterations, std::int64_t per_graph = 0) {
  CudaDevice device({});
  Executor executor(training.program, planned.lowered.plan, device, runner);
  executor.enter();
  per_graph > 0 ? executor.run_graphs(iterations, per_graph) : executor.run(iterations);
  executor.exit();
  EXPECT_LE(executor.arena_peak(), planned.lowered.plan.device_bytes());
}

void expect_same(const TrainingProgram& training, const TrainingRunner& actual,
                 const TrainingRunner& expected) {
  EXPECT_EQ(actual.losses(), expected.losses());
  for (std::size_t t = 0; t < training.program.tensors.size(); ++t) {
    if (!training.program.tensors[t].persistent) continue;
    EXPECT_TRUE(actual.value(static_cast<TensorId>(t)) == expected.value(static_cast<TensorId>(t)))
        << training.program.tensors[t].name;
  }
}

class CudaTraining : public tidepool::testing::CudaTest,
                     public ::testing::WithParamInterface<Storage> {};

void expect_reference_losses(const Result<Graph>& graph, const TrainingOptions& options) {
  ASSERT_TRUE(graph);
  const std::unique_ptr<SampleSource> source = data_for(*graph, 40);
  const SampleSource& data = *source;
  TrainingSettings settings;
  settings.learning_rate = [](std::int64_t) { return 0.002F; };
  const auto expected_program = build(graph, options, reference_kernels());
  const auto expected = make_runner(expected_program, data, reference_kernels(), settings);
  run_reference(expected_program, *expected, 4);
  auto program = build(graph, options, cuda_kernels());
  apply_cost_model(machine_of_tests(), program.program);
  const auto actual = make_runner(program, data, cuda_kernels(), settings);
  run(program, plan(program, *make_none(), std::numeric_limits<Bytes>::max() / 4), *actual, 4);
  ASSERT_EQ(actual->losses().size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(actual->losses()[i], expected->losses()[i], 2e-3F) << "iteration " << i;
  }
}

TEST_P(CudaTraining, AgreesWithTheReference) {
  const TrainingOptions sgd{.batch = 10, .storage = GetParam()};
  TrainingOptions adamw = sgd;
  adamw.optimizer = Optimizer::adamw;
  expect_reference_losses(make_crooked_graph(), sgd);
  expect_reference_losses(make_tangled_graph(), adamw);
  expect_reference_losses(build_model("tiny-resnet"), sgd);
  expect_reference_losses(make_branching_graph(), sgd);
  expect_reference_losses(make_segmenting_graph(), sgd);
  expect_reference_losses(build_model("tiny-inception"), sgd);
  expect_reference_losses(build_model("tiny-fcn"), sgd);
  expect_reference_losses(build_model("tiny-unet"), sgd);
  expect_reference_losses(build_model("tiny-resnet-sd"), sgd);
  expect_reference_losses(build_model("tiny-transformer"), adamw);
  expect_reference_losses(build_model("tiny-gpt"), adamw);
  expect_reference_losses(build_model("tiny-lstm"), adamw);
  expect_reference_losses(make_recurrent_graph(), sgd);
  if (GetParam() == Storage::in_place) {
    expect_reference_losses(build_model("tiny-kmeans"), {.batch = 40});
  }
}

/// Plans of all planners are the same to a device: these stand for all in most of the cells.
constexpr std::string_view kStandForAll[] = {"auto", "autoswap", "random"};

/// Each cell has one of them with each seed of the stand-in. Where every planner runs, so does a
/// third of all of them.
bool is_this_runs(const PlannerInfo& planner, std::size_t cell, bool every_planner) {
  const auto* stands = std::ranges::find(kStandForAll, planner.name);
  if (stands != std::end(kStandForAll) &&
      is_of_this_run(static_cast<std::size_t>(stands - kStandForAll) + cell)) {
    return true;
  }
  return every_planner && is_of_this_run(static_cast<std::size_t>(
                              std::ranges::find(planner_list(), planner.name, &PlannerInfo::name) -
                              planner_list().begin()));
}

TEST_P(CudaTraining, IsBitForBitTheSameInsideAnyBudgetAndInGraphs) {
  constexpr std::int64_t kIterations = 4;
  const std::vector<int> all = {75, 50, 0};
  const std::pair<const char*, std::vector<int>> models[] = {
      {"tiny-vgg", all},        {"tiny-resnet", all},      {"mlp", all},
      {"tiny-mobilenet", {50}}, {"tiny-squeezenet", {50}}, {"tiny-gpt", {50}},
      {"tiny-unet", {50}},      {"tiny-resnet-sd", {50}},  {"tiny-lstm", {50}},
      {"tiny-kmeans", {60, 0}}};
  std::size_t cell = 0;
  for (const auto& [model, percents] : models) {
    SCOPED_TRACE(model);
    ++cell;
    const auto graph = build_small_model(model);
    if (graph->clusters > 0 && GetParam() == Storage::separate) continue;
    const bool text = graph->answers > 1 && graph->image == ImageShape{};  // many launches
    const TrainingOptions options{.batch = text                  ? 4
                                           : graph->clusters > 0 ? 16
                                                                 : 8,
                                  .storage = GetParam()};
    auto training = build(graph, options, cuda_kernels());
    apply_cost_model(machine_of_tests(), training.program);
    const std::unique_ptr<SampleSource> source = data_for(training, 64);
    const SampleSource& data = *source;
    const auto unlimited = make_runner(training, data, cuda_kernels());
    run(training, plan(training, *make_none(), std::numeric_limits<Bytes>::max() / 4), *unlimited,
        kIterations);
    const AccessIndex index(training.program);
    const Bytes peak = load_profile(training.program, index, kAlignment,
                                    least_workspace_algorithms(training.program))
                           .peak;
    const Bytes smallest = smallest_budget(training.program, kAlignment).bytes;
    for (const PlannerInfo& info : planner_list()) {
      if (info.name == "none") continue;
      for (std::size_t i = 0; i < percents.size(); ++i) {
        const int percent = percents[i];
        const bool every_planner = percents.size() > 1 && percent == 50;
        if (!is_this_runs(info, cell + i, every_planner)) continue;
        SCOPED_TRACE(std::string(info.name) + " " + std::to_string(percent));
        const auto planned = plan(training, *info.make(), std::max(smallest, peak * percent / 100));
        const auto inside = make_runner(training, data, cuda_kernels());
        run(training, planned, *inside, kIterations);
        expect_same(training, *inside, *unlimited);
        const auto in_graphs = make_runner(training, data, cuda_kernels());
        run(training, planned, *in_graphs, kIterations, 2);
        expect_same(training, *in_graphs, *unlimited);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Storages, CudaTraining,
                         ::testing::Values(Storage::separate, Storage::in_place));

class CudaRuns : public tidepool::testing::CudaTest {};

TEST_F(CudaRuns, AllocateNothingOnTheDeviceOnceTheyAreWarm) {
  const auto graph = build_model("tiny-vgg");
  auto training = build(graph, {.batch = 16}, cuda_kernels());
  apply_cost_model(machine_of_tests(), training.program);
  const SyntheticDataset data(training.image, training.classes, 64);
  const auto runner = make_runner(training, data, cuda_kernels());
  const auto planned = plan(training, *make_none(), std::numeric_limits<Bytes>::max() / 4);
  CudaDevice device({});
  Executor executor(training.program, planned.lowered.plan, device, *runner);
  executor.enter();
  executor.run(2);  // loads what modules are missing
  const Bytes level = device.bytes_above_level();
  executor.run(20);
  EXPECT_EQ(device.bytes_above_level(), level);
  executor.exit();
}

TEST_F(CudaRuns, TimesOfOpsAddUpToTheIteration) {
  const auto graph = build_model("vgg11");
  auto training = build(graph, {.batch = 64}, cuda_kernels());
  const SyntheticDataset data(training.image, training.classes, 64);
  const auto runner = make_runner(training, data, cuda_kernels());
  const auto planned = plan(training, *make_none(), std::numeric_limits<Bytes>::max() / 4);
  CudaDevice device({});
  Executor executor(training.program, planned.lowered.plan, device, *runner);
  executor.enter();
  executor.run(3);
  executor.record_timings();
  const RunReport report = executor.run(10);
  apply_timings(planned.lowered.plan, executor.timings(), training.program);
  Nanos sum{0};
  for (std::size_t i = 0; i < training.program.ops.size(); ++i) {
    if (training.program.ops[i].place != OpPlace::device) continue;
    const auto algorithm = static_cast<std::size_t>(planned.lowered.strategy.algorithms[i]);
    EXPECT_GT(training.program.ops[i].algorithms[algorithm].time, Nanos{0});
    sum += training.program.ops[i].algorithms[algorithm].time;
  }
  std::vector<Nanos> times = report.iteration_times;
  std::sort(times.begin(), times.end());
  const Nanos median = times[times.size() / 2];
  EXPECT_LE(sum, median + median / 5);
  EXPECT_GE(sum, median / 5) << "ops take a good part of an iteration";
}

}  // namespace
}  // namespace tidepool::nn
