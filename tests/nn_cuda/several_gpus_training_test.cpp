// Data parallel training on several GPUs: the bits of one GPU that sums the same parts in rounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "device/cuda/cuda_device.h"
#include "ir/load_profile.h"
#include "lower/compose.h"
#include "nn/data_parallel.h"
#include "nn/kernels/cuda/cuda.h"
#include "nn/training_fixture.h"
#include "planners/none.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "runtime/executor.h"
#include "support/cuda.h"
#include "support/standin_seed.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using tidepool::testing::is_of_this_run;

constexpr Bytes kAlign = 512;
constexpr std::int64_t kParallelIterations = 3;

Machine one_gpu() {
  Machine machine;
  machine.set_alignment(kAlign);
  machine.to_host() = machine.to_device() = LinkSpeed{20e9, Nanos{5000}};
  machine.compute = {1e13, 1e12, Nanos{3000}, 1, 0};
  machine.host_arithmetic = {1e10, 1e10, 1};
  return machine;
}

struct Setting {
  const char* model;
  Optimizer optimizer = Optimizer::sgd;
  bool naive = false;
  std::int64_t rounds = 1;  ///< on each GPU
};

/// A part with its times, and the whole.
class ParallelTrainingOnGpus {
 public:
  ParallelTrainingOnGpus(const Setting& setting, int gpus) : gpus_(gpus), naive_(setting.naive) {
    TrainingOptions options{.batch = 4L * gpus, .sub_batch_statistics = true};
    options.optimizer = setting.optimizer;
    options.devices = gpus;
    options.naive_accumulation = setting.naive;
    options.sub_batch = setting.rounds > 1 ? 4 / setting.rounds : 0;
    part = build(build_small_model(setting.model), options, cuda_kernels());
    parallel = replicate(part, options, cuda_kernels());
    options.devices = 1;
    options.naive_accumulation = false;
    options.sub_batch = 4 / setting.rounds;
    alone = build(build_small_model(setting.model), options, cuda_kernels());
    for (Program* program : {&parallel.whole.program, &part.program, &alone.program}) {
      apply_cost_model(one_gpu(), *program);
    }
    take_times(part.program, parallel.replication, parallel.whole.program);
    apply_host_model(one_gpu(), 1, parallel.whole.program);
    data = data_for(alone, 64);
  }

  /// So many percent of the part's peak; 0: as little as there can be. Nothing where the planner
  /// has no plan.
  [[nodiscard]] std::optional<Plan> plan(const PlannerInfo& planner, int percent) const {
    const Bytes peak = load_profile(part.program, AccessIndex(part.program), kAlign,
                                    least_workspace_algorithms(part.program))
                           .peak;
    const Bytes least = smallest_budget(part.program, kAlign).bytes;
    FixedWorkload workload(part.program);
    PlannerOptions options;
    options.evaluation_limit = 200;  // any plan will do
    options.may.algorithms = false;  // each has bits of its own
    options.may.streaming = true;
    const Machine machine = with_devices(one_gpu(), gpus_);
    const auto planned = make_plan(*planner.make(), workload, one_of_devices(machine),
                                   {std::max(least, peak * percent / 100), 0}, options);
    if (!planned) {
      EXPECT_EQ(planned.error().code, ErrorCode::infeasible) << planned.error().message;
      return std::nullopt;
    }
    const PartPlan input{part.program, planned->lowered.plan, parallel.whole.program,
                         parallel.replication, machine};
    auto composed = naive_ ? compose_naive(input) : compose(input, {});
    EXPECT_TRUE(composed) << composed.error().message;
    return std::move(composed->plan);
  }

  [[nodiscard]] std::unique_ptr<TrainingRunner> runner(const TrainingProgram& program) const {
    return make_runner(program, *data, cuda_kernels());
  }

  TrainingProgram part;
  DataParallel parallel;
  TrainingProgram alone;  ///< on one GPU, in rounds
  std::unique_ptr<SampleSource> data;

 private:
  int gpus_;
  bool naive_;
};

void run_on(const TrainingProgram& training, const Plan& plan, OpRunner& runner,
            const CudaDeviceOptions& options, std::int64_t per_graph) {
  CudaDevice device(options);
  Executor executor(training.program, plan, device, runner);
  executor.enter();
  per_graph > 0 ? executor.run_graphs(kParallelIterations, per_graph)
                : executor.run(kParallelIterations);
  executor.exit();
}

/// On one GPU, everything kept.
void run_alone(const ParallelTrainingOnGpus& job, TrainingRunner& runner) {
  FixedWorkload workload(job.alone.program);
  PlannerOptions options;
  options.may.algorithms = false;
  const auto planned = make_plan(*make_none(), workload, one_gpu(),
                                 {std::numeric_limits<Bytes>::max() / 4, 0}, options);
  ASSERT_TRUE(planned) << planned.error().message;
  run_on(job.alone, planned->lowered.plan, runner, {}, 0);
}

/// Weights and their state. Statistics of batch norm are of each GPU.
void expect_same_weights(const TrainingRunner& runner, const TrainingRunner& expected) {
  EXPECT_EQ(runner.losses(), expected.losses());
  const TrainingProgram& program = expected.program();
  for (const Parameter& p : program.parameters) {
    if (!p.learnable) continue;
    std::vector<TensorId> tensors = p.state;
    tensors.push_back(p.tensor);
    for (const TensorId t : tensors) {
      const std::string& name = program.program.tensors[static_cast<std::size_t>(t)].name;
      const auto value = runner.value(name);
      ASSERT_TRUE(value) << value.error().message;
      EXPECT_TRUE(std::ranges::equal(*value, expected.value(t))) << name;
    }
  }
}

class TrainingOnSeveralGpus : public tidepool::testing::SeveralGpusTest {
 protected:
  static int gpus() { return GetParam(); }
};

std::vector<PlannerInfo> planners_of_this_run() {
  std::vector<PlannerInfo> list;
  for (std::size_t i = 0; i < planner_list().size(); ++i) {
    if (is_of_this_run(i)) list.push_back(planner_list()[i]);
  }
  return list;
}

PlannerInfo planner_named(std::string_view name) {
  return *std::ranges::find(planner_list(), name, &PlannerInfo::name);
}

TEST_P(TrainingOnSeveralGpus, HasTheBitsOfOneThatSumsThePartsInRounds) {
  const Setting settings[] = {{"tiny-vgg"},
                              {"mlp", Optimizer::adamw},
                              {"tiny-lstm", Optimizer::adamw},
                              {"mlp", Optimizer::sgd, true},
                              {"tiny-vgg", Optimizer::adamw, true}};
  for (std::size_t i = 0; i < std::size(settings); ++i) {
    if (!is_of_this_run(i)) continue;
    const Setting& setting = settings[i];
    SCOPED_TRACE(std::string(setting.model) + (setting.naive ? " naive" : ""));
    const ParallelTrainingOnGpus job(setting, gpus());
    const auto expected = job.runner(job.alone);
    run_alone(job, *expected);
    for (const auto& [planner, percent] : {std::pair{"none", 200}, std::pair{"autoswap", 50}}) {
      SCOPED_TRACE(planner);
      const auto plan = job.plan(planner_named(planner), percent);
      ASSERT_TRUE(plan);
      const auto runner = job.runner(job.parallel.whole);
      run_on(job.parallel.whole, *plan, *runner, {}, percent < 100 ? 1 : 0);
      expect_same_weights(*runner, *expected);
    }
  }
}

TEST_P(TrainingOnSeveralGpus, HasTheSameBitsWithEveryPlanner) {
  for (const bool naive : {false, true}) {
    const ParallelTrainingOnGpus job({"mlp", Optimizer::sgd, naive}, gpus());
    const auto expected = job.runner(job.alone);
    run_alone(job, *expected);
    int trained = 0;
    for (const PlannerInfo& planner : planners_of_this_run()) {
      SCOPED_TRACE(std::string(planner.name) + (naive ? " naive" : ""));
      for (const int percent : {0, 60, 200}) {
        const auto plan = job.plan(planner, percent);
        if (!plan) continue;
        const auto runner = job.runner(job.parallel.whole);
        run_on(job.parallel.whole, *plan, *runner, {}, 0);
        expect_same_weights(*runner, *expected);
        ++trained;
        break;
      }
    }
    EXPECT_EQ(trained, static_cast<int>(planners_of_this_run().size()));
  }
}

/// Each GPU sums its rounds first: not what one GPU does. Whatever the plan, the bits are the same.
TEST_P(TrainingOnSeveralGpus, RunsInRoundsOnEachOfThem) {
  for (const bool naive : {false, true}) {
    const ParallelTrainingOnGpus job({"tiny-vgg", Optimizer::sgd, naive, 2}, gpus());
    const auto kept = job.plan(planner_named("none"), 400);
    const auto tight = job.plan(planner_named("autoswap"), 0);
    ASSERT_TRUE(kept && tight);
    const auto expected = job.runner(job.parallel.whole), runner = job.runner(job.parallel.whole);
    run_on(job.parallel.whole, *kept, *expected, {}, 0);
    run_on(job.parallel.whole, *tight, *runner, {}, 0);
    expect_same_weights(*runner, *expected);
  }
}

/// The run ends, and no value of it is handed out: those of before it stay.
TEST_P(TrainingOnSeveralGpus, AFailureOfOneEndsTheRunWithoutAPartialUpdate) {
  const ParallelTrainingOnGpus job({"mlp"}, gpus());
  const auto plan = job.plan(planner_named("autoswap"), 60);
  ASSERT_TRUE(plan);
  const auto run_with = [&](const FaultPlan& faults) {
    const auto runner = job.runner(job.parallel.whole), before = job.runner(job.parallel.whole);
    CudaDeviceOptions options;
    options.faults = faults;
    try {
      run_on(job.parallel.whole, *plan, *runner, options, 0);
      ADD_FAILURE() << "no exception";
    } catch (const DeviceError& error) {
      EXPECT_THAT(error.what(), StartsWith("GPU "));
      EXPECT_THAT(error.what(), HasSubstr("injected fault"));
    }
    for (const Parameter& p : job.parallel.whole.parameters) {
      EXPECT_TRUE(runner->value(p.tensor) == before->value(p.tensor)) << p.name;
    }
  };
  const auto copies_out =
      std::ranges::count_if(plan->steady.instructions, [&](const Instruction& x) {
        return x.kind == InstructionKind::copy && plan->kind_of(x.to) == SpaceKind::host;
      });
  for (const std::int64_t number : {copies_out + 1, 2 * copies_out - 1}) {
    FaultPlan faults;
    faults.fail_copy = {number, CopyRoute::to_host};
    run_with(faults);
  }
  FaultPlan faults;
  faults.fail_launch = 60;
  run_with(faults);
}

INSTANTIATE_TEST_SUITE_P(TwoGpus, TrainingOnSeveralGpus, ::testing::Values(2));
INSTANTIATE_TEST_SUITE_P(FourGpus, TrainingOnSeveralGpus, ::testing::Values(4));

}  // namespace
}  // namespace tidepool::nn
