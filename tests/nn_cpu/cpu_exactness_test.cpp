// Promise 1 (DESIGN.md section 5) with kernels that have a choice of algorithms: training inside a
// budget is bit for bit unlimited training with the same algorithms, under either policy.
#include <gtest/gtest.h>

#include <map>

#include "ir/load_profile.h"
#include "nn/training_fixture.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "runtime/executor.h"
#include "schedule/plan_totals.h"
#include "support/attacks.h"
#include "support/fake_device.h"
#include "support/repeatable.h"

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
  std::size_t turn = 0;
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
    // Each planner with one of the models.
    for (const PlannerInfo& info : tidepool::testing::in_turn(planner_list(), turn++, 3)) {
      if (info.name == "none") continue;
      SCOPED_TRACE(info.name);
      const Bytes budget = smallest_budget(training.program, kAlignment).bytes * 11 / 10;
      const auto planned = make_plan(*info.make(), workload, machine, {budget, 0},
                                     tidepool::testing::repeatable(1, 100, info.name));
      ASSERT_TRUE(planned) << planned.error().message;
      const PlanTotals totals = totals_of(training.program, planned->lowered.plan);
      EXPECT_GT(totals.swapped_tensors + totals.recomputed_ops, 0);
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
  // Unlimited training with each choice of algorithms.
  std::map<std::vector<std::int32_t>, std::unique_ptr<TrainingRunner>> all_unlimited;
  std::size_t turn = GetParam() == AlgorithmPolicy::fastest ? 1 : 0;
  for (const int percent : {200, 75, 50, 0}) {
    // Each planner in two of the budgets, in the other two under the other policy.
    for (const PlannerInfo& info : tidepool::testing::in_turn(planner_list(), turn++, 2)) {
      SCOPED_TRACE(std::string(info.name) + " " + std::to_string(percent));
      FixedWorkload workload(training.program);
      PlannerOptions options = tidepool::testing::repeatable(1, 100, info.name);
      options.algorithms = GetParam();
      const Bytes budget = std::max(smallest, peak * percent / 100);
      const auto planned = make_plan(*info.make(), workload, machine, {budget, 0}, options);
      if (!planned && info.name == "none") continue;
      ASSERT_TRUE(planned) << planned.error().message;
      if (budget < peak) {
        const PlanTotals totals = totals_of(training.program, planned->lowered.plan);
        EXPECT_GT(totals.swapped_tensors + totals.recomputed_ops, 0);
      }
      const std::vector<std::int32_t>& algorithms = planned->lowered.strategy.algorithms;
      auto& unlimited = all_unlimited[algorithms];
      if (!unlimited) {
        unlimited = make_runner(training, data, cpu_kernels());
        run_reference(training, *unlimited, kIterations, algorithms);
      }
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
