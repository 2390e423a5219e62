// Promise 1 (DESIGN.md section 5) with real kernels on the fake device: training inside a budget is
// bit for bit training in program order with all the memory there is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "nn/training_fixture.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "runtime/executor.h"
#include "schedule/plan_totals.h"
#include "support/attacks.h"
#include "support/fake_device.h"
#include "support/repeatable.h"
#include "support/sanitized.h"

namespace tidepool::nn {
namespace {

constexpr std::int64_t kIterationsRun = 3;
constexpr bool kAllSettings = !tidepool::testing::kSanitized;

struct Setting {
  const char* model;
  Storage storage;
  int percent;  ///< of the unlimited peak; 0: the smallest feasible budget
  std::int64_t sub_batch = 4;
  std::size_t turn = 0;  ///< position in the list
};

std::string name_of(const ::testing::TestParamInfo<Setting>& info) {
  std::string model = info.param.model;
  std::erase(model, '-');
  return model + (info.param.storage == Storage::separate ? "Separate" : "InPlace") +
         std::to_string(info.param.percent) + "InRoundsOf" + std::to_string(info.param.sub_batch);
}

/// One in so many planners has its turn. Five budgets and four turns: each planner meets each
/// model, storage and budget.
constexpr std::size_t kTurns = 4;

/// With the planners whose turn it is, under a budget of so many percent of the unlimited peak.
void expect_exact(const Result<Graph>& graph, const TrainingOptions& options, int percent,
                  std::size_t turn) {
  constexpr Bytes kAlignment = 64;
  ASSERT_TRUE(graph) << graph.error().message;
  auto training = build_training_program(*graph, options, reference_kernels());
  ASSERT_TRUE(training) << training.error().message;
  const std::unique_ptr<SampleSource> source = data_for(*training, 64);
  const SampleSource& data = *source;

  Machine machine;
  machine.set_alignment(kAlignment);
  machine.to_host() = machine.to_device() = LinkSpeed{1e9, Nanos{1000}};
  machine.compute = {1e11, 1e10, Nanos{1000}, 1, 0};
  apply_cost_model(machine, training->program);
  const AccessIndex index(training->program);
  const Bytes peak = load_profile(training->program, index, kAlignment,
                                  least_workspace_algorithms(training->program))
                         .peak;
  const Bytes smallest = smallest_budget(training->program, kAlignment).bytes;
  const Bytes budget = percent == 0 ? smallest : std::max(smallest, peak * percent / 100);

  auto unlimited = TrainingRunner::create(*training, reference_kernels(), data, {});
  ASSERT_TRUE(unlimited);
  run_reference(*training, **unlimited, kIterationsRun);

  for (const PlannerInfo& info : tidepool::testing::in_turn(planner_list(), turn, kTurns)) {
    SCOPED_TRACE(info.name);
    FixedWorkload workload(training->program);
    const auto planned = make_plan(*info.make(), workload, machine, {budget, 0},
                                   tidepool::testing::repeatable(1, 100, info.name));
    if (!planned && info.name == "none") {
      EXPECT_EQ(planned.error().code, ErrorCode::infeasible);
      continue;
    }
    ASSERT_TRUE(planned) << planned.error().message;
    if (budget < peak) {
      const PlanTotals totals = totals_of(training->program, planned->lowered.plan);
      EXPECT_GT(totals.swapped_tensors + totals.recomputed_ops, 0) << "something has to give way";
    }

    auto inside = TrainingRunner::create(*training, reference_kernels(), data, {});
    ASSERT_TRUE(inside);
    FakeDevice device(FakeScript{});
    Executor executor(training->program, planned->lowered.plan, device, **inside);
    executor.enter();
    executor.run(kIterationsRun);
    executor.exit();

    EXPECT_LE(executor.arena_peak(), budget);
    EXPECT_THAT(device.races(), ::testing::IsEmpty());
    EXPECT_EQ((*inside)->losses(), (*unlimited)->losses());
    for (std::size_t t = 0; t < training->program.tensors.size(); ++t) {
      const Tensor& tensor = training->program.tensors[t];
      if (!tensor.persistent) continue;
      EXPECT_TRUE((*inside)->value(static_cast<TensorId>(t)) ==
                  (*unlimited)->value(static_cast<TensorId>(t)))
          << tensor.name;
    }
  }
}

class Exactness : public ::testing::TestWithParam<Setting> {};

TEST_P(Exactness, LossesAndWeightsAreThoseOfUnlimitedTraining) {
  const Setting& setting = GetParam();
  TrainingOptions options;
  options.batch = 4;
  options.storage = setting.storage;
  options.sub_batch = setting.sub_batch;
  options.sub_batch_statistics = true;
  expect_exact(build_small_model(setting.model), options, setting.percent, setting.turn);
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const char* model : {"tiny-vgg", "tiny-resnet", "mlp"}) {
    for (const Storage storage : {Storage::in_place, Storage::separate}) {
      for (const int percent : {110, 100, 75, 50, 0}) {
        if (kAllSettings || percent == 50) all.push_back({model, storage, percent});
      }
    }
  }
  for (const char* model : {"tiny-mobilenet", "tiny-squeezenet", "tiny-inception", "tiny-vgg-plain",
                            "tiny-fcn", "tiny-unet", "tiny-resnet-sd"}) {
    if (kAllSettings) all.push_back({model, Storage::separate, 0});
    if (kAllSettings) all.push_back({model, Storage::in_place, 0, 3});
    all.push_back({model, Storage::in_place, 60});
  }
  all.push_back({"tiny-resnet-sd", Storage::separate, 75});
  for (const char* model : {"tiny-vgg", "tiny-resnet", "mlp"}) {
    for (const std::int64_t sub_batch : {1, 3}) {
      for (const int percent : {100, 60, 0}) {
        if (!kAllSettings && (sub_batch == 1 || percent != 60)) continue;
        all.push_back({model, Storage::in_place, percent, sub_batch});
      }
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) all[i].turn = i;
  return all;
}

TEST(KMeansExactness, AssignmentsAndCentroidsAreThoseOfUnlimitedIterations) {
  std::size_t turn = 0;
  for (const int percent : {100, 75, 60, 0}) {
    if (!kAllSettings && percent != 60) continue;
    SCOPED_TRACE(percent);
    expect_exact(build_model("tiny-kmeans"), {.batch = 64}, percent, turn++);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Exactness, ::testing::ValuesIn(settings()), name_of);

TEST(ExactnessOfGelu, InBudgetsAndRounds) {
  std::size_t turn = 0;
  for (const Storage storage : {Storage::in_place, Storage::separate}) {
    for (const int percent : {75, 0}) {
      SCOPED_TRACE(percent);
      expect_exact(make_gelu_graph(), {.batch = 4, .storage = storage}, percent, turn++);
      expect_exact(make_gelu_graph(), {.batch = 4, .sub_batch = 3, .storage = storage}, percent,
                   turn++);
    }
  }
}

TEST(ExactnessOfABranchingGraph, InBudgetsAndRounds) {
  std::size_t turn = 0;
  for (const Storage storage : {Storage::separate, Storage::in_place, Storage::relu_in_place}) {
    SCOPED_TRACE(static_cast<int>(storage));
    const TrainingOptions options{
        .batch = 4, .sub_batch = 3, .sub_batch_statistics = true, .storage = storage};
    expect_exact(make_branching_graph(), options, 60, turn++);
    expect_exact(make_branching_graph(), options, 0, turn++);
  }
}

TEST(ExactnessOfASegmentingGraph, InBudgetsAndRounds) {
  std::size_t turn = 0;
  for (const Storage storage : {Storage::separate, Storage::in_place}) {
    SCOPED_TRACE(static_cast<int>(storage));
    const TrainingOptions options{.batch = 4, .sub_batch = 3, .storage = storage};
    expect_exact(make_segmenting_graph(), options, 60, turn++);
    expect_exact(make_segmenting_graph(), options, 0, turn++);
  }
}

TEST(ExactnessOfTransformers, InBudgetsAndRounds) {
  std::size_t turn = 0;
  for (const char* model : {"tiny-transformer", "tiny-gpt"}) {
    for (const Storage storage : {Storage::in_place, Storage::separate}) {
      for (const int percent : {75, 0}) {
        if (!kAllSettings && percent > 0) continue;
        SCOPED_TRACE(model);
        TrainingOptions options{.batch = 4, .storage = storage};
        expect_exact(build_model(model), options, percent, turn++);
        options.sub_batch = 3;
        options.optimizer = Optimizer::adamw;
        if (storage == Storage::in_place) {
          expect_exact(build_model(model), options, percent, turn++);
        }
      }
    }
  }
}

TEST(ExactnessOfLstms, InBudgetsAndRounds) {
  std::size_t turn = 0;
  for (const Storage storage : {Storage::in_place, Storage::separate}) {
    for (const int percent : {75, 60, 0}) {
      if (!kAllSettings && percent > 0) continue;
      SCOPED_TRACE(percent);
      TrainingOptions options{.batch = 4, .storage = storage};
      expect_exact(build_model("tiny-lstm"), options, percent, turn++);
      options.sub_batch = 3;
      options.optimizer = Optimizer::adamw;
      expect_exact(make_recurrent_graph(), options, percent, turn++);
    }
  }
}

}  // namespace
}  // namespace tidepool::nn
