// Data parallel training with real kernels on the fake device: plans of several devices, composed
// of one device's plan by any planner, are proved, and every run of them gives the bits of one
// device that sums the same parts in rounds.
#include "nn/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "lower/compose.h"
#include "nn/training_fixture.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "runtime/executor.h"
#include "schedule/plan_totals.h"
#include "support/attacks.h"
#include "support/fake_device.h"
#include "support/repeatable.h"
#include "support/run_plan.h"
#include "support/sanitized.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kParallelIterations = 3;

Machine small_machine() {
  Machine machine;
  machine.set_alignment(64);
  machine.to_host() = machine.to_device() = LinkSpeed{1e9, Nanos{1000}};
  machine.compute = {1e11, 1e10, Nanos{1000}, 1, 0};
  machine.host_arithmetic = {1e9, 1e9, 1};
  return machine;
}

/// A part with its times, and the whole.
struct ParallelJob {
  ParallelJob(const char* model, const TrainingOptions& options)
      : part(build(build_small_model(model), options)),
        parallel(replicate(part, options, reference_kernels())),
        naive(options.naive_accumulation) {
    apply_cost_model(small_machine(), parallel.whole.program);
    apply_cost_model(small_machine(), part.program);
    take_times(part.program, parallel.replication, parallel.whole.program);
    apply_host_model(small_machine(), 1, parallel.whole.program);
  }
  TrainingProgram part;
  DataParallel parallel;
  bool naive = false;
};

/// So many percent of the part's peak; 0: as little as there can be.
Result<Planned> plan_part(const Program& part, const PlannerInfo& planner, int percent) {
  const Machine machine = one_of_devices(with_devices(small_machine(), 2));
  const Bytes peak =
      load_profile(part, AccessIndex(part), 64, least_workspace_algorithms(part)).peak;
  const Bytes smallest = smallest_budget(part, 64).bytes;
  FixedWorkload workload(part);
  return make_plan(*planner.make(), workload, machine,
                   {std::max(smallest, peak * percent / 100), 0},
                   tidepool::testing::repeatable(1, 100, planner.name));
}

/// Before any instruction.
std::vector<std::int32_t> random_places(const ParallelJob& job, const Plan& plan, Random& random) {
  std::vector<std::int32_t> places;
  for (std::size_t t = 0; t < job.part.tensors.size(); ++t) {
    const auto end = static_cast<std::uint64_t>(plan.steady.instructions.size()) + 1;
    places.push_back(static_cast<std::int32_t>(random.below(end)));
  }
  return places;
}

/// Weights and their state, and the running statistics of batch norm.
void expect_same_state(const TrainingRunner& runner, const TrainingRunner& expected) {
  EXPECT_EQ(runner.losses(), expected.losses());
  const TrainingProgram& program = expected.program();
  for (const Parameter& p : program.parameters) {
    std::vector<TensorId> tensors = p.state;
    tensors.push_back(p.tensor);
    for (const TensorId t : tensors) {
      const std::string& name = program.program.tensors[t].name;
      const auto value = runner.value(name);
      ASSERT_TRUE(value) << value.error().message;
      EXPECT_TRUE(std::ranges::equal(*value, expected.value(t))) << name;
    }
  }
}

/// The plan is proved in exactly what it takes, and trains right at any speed.
void expect_trains_right(const ParallelJob& job, const Plan& part, const TrainingRunner& expected,
                         const SampleSource& data, std::uint64_t seed) {
  const Machine machine = with_devices(small_machine(), job.parallel.replication.devices);
  ASSERT_EQ(inconsistency(machine), "");
  const Program& whole = job.parallel.whole.program;
  Random random(seed);
  for (int speed = 0; speed < 2; ++speed) {
    const PartPlan input{job.part.program, part, whole, job.parallel.replication, machine};
    const auto composed =
        job.naive ? compose_naive(input) : compose(input, random_places(job, part, random));
    ASSERT_TRUE(composed) << composed.error().message;
    Budget budget{part.device_bytes(), composed->plan.host_bytes()};
    if (job.naive) {
      budget.device = composed->plan.device_bytes();
      budget.others[1] = part.device_bytes();
    }
    const auto proof = check(whole, composed->plan, check_limits(machine, budget));
    ASSERT_TRUE(proof) << proof.error().message;
    auto runner = make_runner(job.parallel.whole, data);
    FakeDevice device(tidepool::testing::random_speeds(random));
    Executor executor(whole, composed->plan, device, *runner);
    executor.enter();
    executor.run(kParallelIterations);
    executor.exit();
    EXPECT_THAT(device.races(), ::testing::IsEmpty());
    expect_same_state(*runner, expected);
  }
}

struct ParallelSetting {
  const char* model;
  std::int32_t devices;
  Optimizer optimizer;
  bool naive = false;
  std::size_t turn = 0;  ///< position in the list
};

auto numbered(std::vector<ParallelSetting> all) {
  for (std::size_t i = 0; i < all.size(); ++i) all[i].turn = i;
  return ::testing::ValuesIn(all);
}

std::string name_of_setting(const ::testing::TestParamInfo<ParallelSetting>& setting) {
  std::string name = setting.param.model;
  std::erase(name, '-');
  return name + "On" + std::to_string(setting.param.devices) + (setting.param.naive ? "Naive" : "");
}

/// Plans of all planners are the same to devices: some stand for all, and of the others one in
/// `one_in` has its turn, none under sanitizers. There two stand for all.
std::vector<PlannerInfo> tried_planners(std::size_t turn, std::size_t one_in) {
  std::vector<PlannerInfo> tried;
  std::vector<PlannerInfo> others;
  for (const PlannerInfo& info : planner_list()) {
    const bool stands_for_all = (info.name == "autoswap" && !tidepool::testing::kSanitized) ||
                                info.name == "modnn" || info.name == "random";
    (stands_for_all ? tried : others).push_back(info);
  }
  if (tidepool::testing::kSanitized) return tried;
  std::ranges::copy(tidepool::testing::in_turn(others, turn, one_in), std::back_inserter(tried));
  return tried;
}

class DataParallelBits : public ::testing::TestWithParam<ParallelSetting> {};

TEST_P(DataParallelBits, AreThoseOfOneDeviceThatSumsThePartsInRounds) {
  const ParallelSetting& setting = GetParam();
  TrainingOptions options{.batch = 8, .sub_batch_statistics = true, .optimizer = setting.optimizer};
  options.devices = setting.devices;
  options.naive_accumulation = setting.naive;
  const ParallelJob job(setting.model, options);
  TrainingOptions rounds = options;
  rounds.devices = 1;
  rounds.naive_accumulation = false;
  rounds.sub_batch = options.batch / setting.devices;
  const TrainingProgram alone = build(build_small_model(setting.model), rounds);
  const auto data = data_for(alone, 64);
  const auto expected = make_runner(alone, *data);
  run_reference(alone, *expected, kParallelIterations);
  int moved = 0;
  for (const PlannerInfo& info : tried_planners(setting.turn, 5)) {
    for (const int percent : {200, 0}) {
      SCOPED_TRACE(std::string(info.name) + " " + std::to_string(percent));
      const auto planned = plan_part(job.part.program, info, percent);
      if (!planned && planned.error().code == ErrorCode::infeasible) continue;
      ASSERT_TRUE(planned) << planned.error().message;
      expect_trains_right(job, planned->lowered.plan, *expected, *data, 7);
      const PlanTotals totals = totals_of(job.part.program, planned->lowered.plan);
      moved += totals.swapped_tensors + totals.recomputed_ops > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(moved, 2) << "plans that swap or recompute";
}

INSTANTIATE_TEST_SUITE_P(Models, DataParallelBits,
                         numbered({ParallelSetting{"tiny-vgg", 2, Optimizer::sgd},
                                   ParallelSetting{"tiny-vgg", 4, Optimizer::adamw},
                                   ParallelSetting{"mlp", 4, Optimizer::sgd},
                                   ParallelSetting{"tiny-gpt", 2, Optimizer::adamw},
                                   ParallelSetting{"tiny-lstm", 2, Optimizer::sgd},
                                   ParallelSetting{"tiny-vgg", 2, Optimizer::adamw, true},
                                   ParallelSetting{"mlp", 4, Optimizer::sgd, true},
                                   ParallelSetting{"tiny-resnet", 4, Optimizer::sgd},
                                   ParallelSetting{"tiny-resnet", 2, Optimizer::sgd, true},
                                   ParallelSetting{"tiny-resnet-sd", 2, Optimizer::sgd}}),
                         name_of_setting);

class DataParallelRounds : public ::testing::TestWithParam<ParallelSetting> {};

TEST_P(DataParallelRounds, RunOnEveryDeviceByAnyPlanner) {
  const ParallelSetting& setting = GetParam();
  TrainingOptions options{.batch = 4L * setting.devices,
                          .sub_batch = 2,
                          .sub_batch_statistics = true,
                          .optimizer = setting.optimizer};
  options.devices = setting.devices;
  options.naive_accumulation = setting.naive;
  const ParallelJob job(setting.model, options);
  ASSERT_EQ(job.part.program.rounds(), 2);
  const auto data = data_for(job.parallel.whole, 64);
  // The meaning of the program itself: what devices sum first has other bits in rounds of one.
  const auto expected = make_runner(job.parallel.whole, *data);
  run_reference(job.parallel.whole, *expected, kParallelIterations);
  std::ptrdiff_t trained = 0;
  const std::vector<PlannerInfo> tried = tried_planners(setting.turn, 4);
  for (const PlannerInfo& info : tried) {
    // As little as there can be, and for those that cannot train in that a little more.
    for (const int percent : {0, 80, 200}) {
      SCOPED_TRACE(std::string(info.name) + " " + std::to_string(percent));
      const auto planned = plan_part(job.part.program, info, percent);
      if (!planned && planned.error().code == ErrorCode::infeasible) continue;
      ASSERT_TRUE(planned) << planned.error().message;
      expect_trains_right(job, planned->lowered.plan, *expected, *data, 11);
      ++trained;
      break;
    }
  }
  EXPECT_EQ(trained, std::ssize(tried));
}

INSTANTIATE_TEST_SUITE_P(Models, DataParallelRounds,
                         numbered({ParallelSetting{"tiny-vgg", 2, Optimizer::sgd},
                                   ParallelSetting{"tiny-vgg", 2, Optimizer::adamw, true},
                                   ParallelSetting{"tiny-vgg", 4, Optimizer::adamw},
                                   ParallelSetting{"tiny-vgg", 4, Optimizer::sgd, true}}),
                         name_of_setting);

TEST(DataParallel, GradientsOfDevicesAreThoseOfTheWholeBatch) {
  // Not bit for bit: one device sums over all samples at once.
  TrainingOptions options{.batch = 8};
  const TrainingProgram alone = build(build_small_model("mlp"), options);
  const auto data = data_for(alone, 64);
  const auto expected = make_runner(alone, *data);
  run_reference(alone, *expected, 1);
  options.devices = 4;
  const ParallelJob job("mlp", options);
  const auto runner = make_runner(job.parallel.whole, *data);
  run_reference(job.parallel.whole, *runner, 1);
  EXPECT_NEAR(runner->losses()[0], expected->losses()[0], 1e-5);
  for (const Parameter& p : alone.parameters) {
    const auto a = floats(expected->value(p.tensor));
    const auto b = floats(*runner->value(p.name));
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << p.name;
  }
}

TEST(DataParallel, WeightsAreThereOnceAndOtherTensorsOnEveryDevice) {
  TrainingOptions options{.batch = 8, .sub_batch_statistics = true};
  options.devices = 2;
  const ParallelJob job("tiny-vgg", options);
  ASSERT_TRUE(validate(job.parallel.whole.program))
      << validate(job.parallel.whole.program).error().message;
  const auto& tensors = job.parallel.whole.program.tensors;
  for (const Parameter& p : job.parallel.whole.parameters) {
    EXPECT_EQ(tensors[p.tensor].name, p.name);
    EXPECT_EQ(p.state.size(), p.learnable ? 1U : 0U) << "on the host, beside the weight";
    EXPECT_THAT(
        tensors,
        ::testing::Not(::testing::Contains(::testing::Field(&Tensor::name, p.name + "@device1"))));
  }
  std::array<int, 2> ops{};
  for (const Op& op : job.parallel.whole.program.ops) {
    if (op.place == OpPlace::device) ++ops[static_cast<std::size_t>(op.device)];
  }
  EXPECT_GT(ops[0], 0);
  EXPECT_EQ(ops[0], ops[1]);
  for (const Tensor& t : job.part.program.tensors) {
    EXPECT_NE(t.kind, TensorKind::optimizer_state) << "no device has any";
  }
}

TEST(DataParallel, StatisticsOfBatchNormAreOfAPartAndNeedLeave) {
  TrainingOptions options{.batch = 8};
  options.devices = 2;
  const auto refused =
      build_training_program(*build_model("tiny-resnet"), options, reference_kernels());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("over 4 samples instead of 8"));
  options.sub_batch_statistics = true;
  const ParallelJob job("tiny-resnet", options);
  const auto data = data_for(job.parallel.whole, 64);
  const auto expected = make_runner(job.parallel.whole, *data);
  run_reference(job.parallel.whole, *expected, kParallelIterations);
  const auto planned = plan_part(job.part.program, planner_list()[0], 0);
  ASSERT_TRUE(planned) << planned.error().message;
  expect_trains_right(job, planned->lowered.plan, *expected, *data, 3);
}

TEST(DataParallel, RefusesBatchesThatCannotBeSplit) {
  TrainingOptions options{.batch = 10};
  options.devices = 4;
  const auto refused = build_training_program(*build_model("mlp"), options, reference_kernels());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::usage);
  EXPECT_THAT(refused.error().message, HasSubstr("equal parts for 4 devices"));
  options.batch = 8;
  options.sub_batch = 3;
  EXPECT_FALSE(build_training_program(*build_model("mlp"), options, reference_kernels()))
      << "a part has 2 samples";
}

TEST(DataParallel, RefusesNaiveAccumulationOfBranches) {
  TrainingOptions options{.batch = 8, .sub_batch_statistics = true};
  options.devices = 2;
  options.naive_accumulation = true;
  const auto refused =
      build_training_program(*build_model("tiny-resnet-sd"), options, reference_kernels());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("naive accumulation is not for branches"));
}

}  // namespace
}  // namespace tidepool::nn
