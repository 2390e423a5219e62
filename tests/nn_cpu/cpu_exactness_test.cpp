// Promise 1 (DESIGN.md section 5) with kernels that have a choice of algorithms: training inside a
// budget is bit for bit unlimited training with the same algorithms, under either policy.
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "nn/training_fixture.h"
#include "planners/registry.h"
#include "runtime/executor.h"
#include "support/fake_device.h"

namespace tidepool::nn {
namespace {

constexpr std::int64_t kIterations = 3;
constexpr Bytes kAlignment = 64;

/// Algorithms with more workspace are faster here, so that the policies choose differently.
void give_times(const Machine& machine, Program& program) {
  apply_cost_model(machine, program);
  for (Op& op : program.ops) {
    for (Algorithm& a : op.algorithms) a.time -= Nanos{a.workspace > 0 ? a.time.count() / 2 : 0};
  }
}

class CpuExactness : public ::testing::TestWithParam<AlgorithmPolicy> {};

TEST(CpuExactnessOfText, LossesAndWeightsAreThoseOfUnlimitedTraining) {
  for (const char* model : {"tiny-transformer", "tiny-gpt", "tiny-lstm"}) {
    SCOPED_TRACE(model);
    auto training =
        build(build_model(model), {.batch = 16, .optimizer = Optimizer::adamw}, cpu_kernels());
    Machine machine;
    machine.set_alignment(kAlignment);
    machine.to_host() = machine.to_device() = LinkSpeed{1e9, Nanos{1000}};
    machine.compute = {1e11, 1e10, Nanos{1000}, 1, 0};
    apply_cost_model(machine, training.program);
    const auto data = data_for(training, 64);
    const auto unlimited = make_runner(training, *data, cpu_kernels());
    run_reference(training, *unlimited, kIterations);
    FixedWorkload workload(training.program);
    for (const PlannerInfo& info : planner_list()) {
      if (info.name == "none") continue;
      SCOPED_TRACE(info.name);
      PlannerOptions options;
      options.time_limit = std::chrono::milliseconds(50);
      const Bytes budget = smallest_budget(training.program, kAlignment).bytes * 11 / 10;
      const auto planned = make_plan(*info.make(), workload, machine, {budget, 0}, options);
      ASSERT_TRUE(planned) << planned.error().message;
      const auto inside = make_runner(training, *data, cpu_kernels());
      FakeDevice device(FakeScript{});
      Executor executor(training.program, planned->lowered.plan, device, *inside);
      executor.enter();
      executor.run(kIterations);
      executor.exit();
      EXPECT_EQ(inside->losses(), unlimited->losses());
      for (const Parameter& parameter : training.parameters) {
        EXPECT_TRUE(inside->value(parameter.tensor) == unlimited->value(parameter.tensor))
            << parameter.name;
      }
    }
  }
}

TEST_P(CpuExactness, LossesAndWeightsAreThoseOfUnlimitedTrainingWithTheSameAlgorithms) {
  auto training = build(build_model("tiny-vgg"), {.batch = 16}, cpu_kernels());
  Machine machine;
  machine.set_alignment(kAlignment);
  machine.to_host() = machine.to_device() = LinkSpeed{1e9, Nanos{1000}};
  machine.compute = {1e11, 1e10, Nanos{1000}, 1, 0};
  give_times(machine, training.program);
  const SyntheticDataset data(training.image, training.classes, 64);
  const AccessIndex index(training.program);
  const auto least = least_workspace_algorithms(training.program);
  const bool choice = choose_algorithms(training.program, AlgorithmPolicy::fastest) != least;
  if (!choice && GetParam() == AlgorithmPolicy::fastest) {
    GTEST_SKIP() << "oneDNN offers one algorithm an op on this processor: the other case has it";
  }
  const Bytes peak = load_profile(training.program, index, kAlignment, least).peak;
  const Bytes smallest = smallest_budget(training.program, kAlignment).bytes;
  for (const PlannerInfo& info : planner_list()) {
    for (const int percent : {200, 75, 50, 0}) {
      SCOPED_TRACE(std::string(info.name) + " " + std::to_string(percent));
      FixedWorkload workload(training.program);
      PlannerOptions options;
      options.algorithms = GetParam();
      options.time_limit = std::chrono::milliseconds(50);
      const Bytes budget = std::max(smallest, peak * percent / 100);
      const auto planned = make_plan(*info.make(), workload, machine, {budget, 0}, options);
      if (!planned && info.name == "none") continue;
      ASSERT_TRUE(planned) << planned.error().message;
      const auto unlimited = make_runner(training, data, cpu_kernels());
      run_reference(training, *unlimited, kIterations, planned->lowered.strategy.algorithms);
      const auto inside = make_runner(training, data, cpu_kernels());
      FakeDevice device(FakeScript{});
      Executor executor(training.program, planned->lowered.plan, device, *inside);
      executor.enter();
      executor.run(kIterations);
      executor.exit();
      EXPECT_LE(executor.arena_peak(), budget);
      EXPECT_EQ(inside->losses(), unlimited->losses());
      for (std::size_t t = 0; t < training.program.tensors.size(); ++t) {
        if (!training.program.tensors[t].persistent) continue;
        EXPECT_TRUE(inside->value(static_cast<TensorId>(t)) ==
                    unlimited->value(static_cast<TensorId>(t)))
            << training.program.tensors[t].name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, CpuExactness,
                         ::testing::Values(AlgorithmPolicy::least_workspace,
                                           AlgorithmPolicy::fastest),
                         [](const auto& policy) {
                           return policy.param == AlgorithmPolicy::fastest ? "Fastest"
                                                                           : "LeastWorkspace";
                         });

}  // namespace
}  // namespace tidepool::nn
