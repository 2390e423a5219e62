// Training through the library: what it allocates, what it returns, whom it tells.
#include "train/train.h"

#include <algorithm>

#include "base/file.h"
#include "nn/data/checkpoint.h"
#include "train/training_fixture.h"
#include "train/training_spec.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Pair;
using ::testing::SizeIs;

class TrainTest : public testing::TimedTrainingTest {};

TEST_F(TrainTest, NothingOpensAnArenaAboveTheBudget) {
  for (const double percent : {60.0, 150.0}) {
    for (const AlgorithmPolicy policy :
         {AlgorithmPolicy::least_workspace, AlgorithmPolicy::fastest}) {
      testing::forget_opened();
      TrainingSpec spec = tiny(percent);
      spec.job.algorithms = policy;
      const auto report = run_training(spec, listener_);
      ASSERT_TRUE(report) << report.error().message;
      const Bytes budget = report->start.budget.device;
      EXPECT_THAT(testing::opened_devices(), SizeIs(::testing::Ge(2U))) << "profile and training";
      EXPECT_THAT(testing::opened_devices(),
                  Each(Field(&testing::OpenedArenas::device, Le(budget))));
      EXPECT_LE(testing::most_open_at_once(), budget) << "one device at a time";
      EXPECT_LE(report->arena_peak, budget);
      EXPECT_LE(report->start.profile.how.arena_peak, budget);
      EXPECT_EQ(report->losses.size(), 3U);
      if (percent < 100) {
        EXPECT_LT(budget, report->start.unlimited_peak);
      }
    }
  }
}

/// No stopwatch chooses rounds or algorithms: each planner that could is the default one's part.
TEST_F(TrainTest, ABudgetChangesNoBitOfAnyFamilyWhereNothingElseIsAskedFor) {
  for (const char* model : {"mlp", "tiny-vgg-plain", "tiny-squeezenet", "tiny-resnet",
                            "tiny-transformer", "tiny-lstm"}) {
    SCOPED_TRACE(model);
    TrainingSpec spec;
    spec.job.model = model;
    spec.job.batch = 32;
    spec.job.data.name = "synthetic";
    spec.job.device.link = 1'000'000'000;
    spec.planner.evaluations = 100;
    spec.iterations = 2;
    const auto unlimited = run_training(spec, listener_);
    ASSERT_TRUE(unlimited) << unlimited.error().message;
    EXPECT_EQ(unlimited->other_bits, "");
    int moved = 0;
    for (const double percent : {95.0, 60.0}) {
      spec.budget.device.percent = percent;
      const auto report = run_training(spec, listener_);
      if (!report && report.error().code == ErrorCode::infeasible) continue;
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ(report->rounds, 1);
      EXPECT_EQ(report->other_bits, "");
      EXPECT_EQ(report->state_crc32, unlimited->state_crc32);
      EXPECT_EQ(report->losses, unlimited->losses);
      moved += report->totals.swapped_tensors + report->totals.recomputed_ops > 0 ? 1 : 0;
    }
    EXPECT_GT(moved, 0);
    spec.budget.device = {.bytes = kNoDeviceLimit};
    spec.job.sub_batch = 16;
    spec.job.sub_batch_statistics = true;
    const auto rounds = run_training(spec, listener_);
    ASSERT_TRUE(rounds) << rounds.error().message;
    EXPECT_EQ(rounds->other_bits, "2 rounds (`sub_batch`)");
  }
}

TEST_F(TrainTest, NothingOpensAHostArenaAboveItsBudget) {
  TrainingSpec spec = tiny(60);
  spec.budget.host = 16 * kMiB;
  const auto report = run_training(spec, listener_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(testing::opened_devices(),
              Each(Field(&testing::OpenedArenas::host, Le(spec.budget.host))));
}

TEST_F(TrainTest, EpochsAndEvaluationStayInsideToo) {
  TrainingSpec spec = tiny_epochs(60, 1);
  spec.evaluate = true;
  const auto report = run_training(spec, listener_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_LE(largest_arena(), report->start.budget.device);
  ASSERT_THAT(report->epochs, SizeIs(1));
  EXPECT_TRUE(report->epochs[0].test);
  EXPECT_THAT(listener_.epochs, SizeIs(1));
  EXPECT_EQ(report->next_iteration, 10);
}

/// The check above would see it.
TEST_F(TrainTest, OnlyAComparisonTrainsWithoutABudgetAndFindsTheSameBits) {
  TrainingSpec spec = tiny(60);
  const auto alone = run_training(spec, listener_);
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_FALSE(alone->baseline);
  EXPECT_FALSE(alone->measured_overhead());
  spec.comparison = Comparison::times;
  const auto timed = run_training(spec, listener_);
  ASSERT_TRUE(timed) << timed.error().message;
  EXPECT_GE(largest_arena(), timed->start.unlimited_peak);
  EXPECT_GT(testing::most_open_at_once(), largest_arena());
  ASSERT_TRUE(timed->baseline);
  EXPECT_FALSE(timed->baseline->identical);
  EXPECT_TRUE(timed->measured_overhead());
  spec.comparison = Comparison::bits;
  const auto compared = run_training(spec, listener_);
  ASSERT_TRUE(compared) << compared.error().message;
  ASSERT_TRUE(compared->baseline);
  EXPECT_EQ(compared->baseline->identical, true);
  EXPECT_EQ(compared->losses, alone->losses);
  EXPECT_EQ(compared->state_crc32, alone->state_crc32);
}

/// With the same algorithms and rounds, which the planner would choose by the budget.
TEST_F(TrainTest, BudgetsDoNotChangeBits) {
  std::optional<std::uint32_t> state;
  for (const double percent : {60.0, 80.0, 150.0}) {
    TrainingSpec spec = tiny(percent);
    spec.job.algorithms = AlgorithmPolicy::least_workspace;
    spec.job.sub_batch = spec.job.batch;
    const auto report = run_training(spec, listener_);
    ASSERT_TRUE(report) << report.error().message;
    if (!state) state = report->state_crc32;
    EXPECT_EQ(report->state_crc32, *state) << percent;
  }
}

TEST_F(TrainTest, SeveralDevicesTrainToTheBitsOfOneThatSumsTheirPartsInRounds) {
  for (const std::int32_t devices : {2, 4}) {
    TrainingSpec one = tiny(150);
    one.job.model = "mlp";
    one.job.batch = 500;
    one.planner.name = "autoswap";
    one.job.optimizer = nn::Optimizer::adamw;
    one.job.sub_batch = one.job.batch / devices;
    const auto alone = run_training(one, listener_);
    ASSERT_TRUE(alone) << alone.error().message;
    for (const Accumulation accumulation : {Accumulation::overlapped, Accumulation::naive}) {
      testing::forget_opened();
      TrainingSpec several = one;
      several.job.sub_batch = 0;
      several.job.devices = devices;
      several.job.accumulation = accumulation;
      several.budget.device = {.bytes = 0, .percent = 250};
      const auto report = run_training(several, listener_);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ(report->losses, alone->losses);
      EXPECT_EQ(report->state_crc32, alone->state_crc32);
      ASSERT_TRUE(report->start.parallel);
      EXPECT_EQ(report->start.parallel->plan.arenas.size(), static_cast<std::size_t>(devices) + 1);
      EXPECT_LE(largest_arena(), report->start.budget.device);
    }
  }
}

TEST_F(TrainTest, SeveralDevicesStayInsideTheBudgetAndGoOnFromCheckpoints) {
  TrainingSpec spec = tiny_epochs(90, 2);
  spec.job.model = "mlp";
  spec.planner.name = "autoswap";
  spec.job.devices = 2;
  spec.evaluate = true;
  const auto whole = run_training(spec, listener_);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_LE(whole->arena_peak, whole->start.budget.device);
  EXPECT_TRUE(whole->epochs.back().test);
  spec.epochs = 1;
  spec.checkpoint = folder_.file("c.ckpt");
  ASSERT_TRUE(run_training(spec, listener_));
  spec.epochs = 2;
  spec.resume = spec.checkpoint;
  const auto resumed = run_training(spec, listener_);
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->state_crc32, whole->state_crc32);
  spec.epochs = 3;
  spec.job.devices = 1;
  spec.job.sub_batch = spec.job.batch / 2;
  const auto refused = run_training(spec, listener_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("was saved with devices '2', this training has '1'"));
}

TEST_F(TrainTest, ACheckpointThatDoesNotSayItsAlgorithmsIsRefused) {
  TrainingSpec spec = tiny_epochs(60, 1);
  spec.checkpoint = folder_.file("c.ckpt");
  const auto trained = run_training(spec, listener_);
  ASSERT_TRUE(trained) << trained.error().message;
  const auto file = nn::CheckpointFile::open(spec.checkpoint);
  ASSERT_TRUE(file) << file.error().message;
  nn::Checkpoint without = file->checkpoint();
  ASSERT_EQ(
      std::erase_if(without.settings, [](const auto& s) { return s.first == "algorithm_choice"; }),
      1U);
  const auto zeros = [](std::size_t, Bytes, std::span<std::byte> to) {
    std::ranges::fill(to, std::byte{0});
  };
  spec.epochs = 2;
  spec.resume = folder_.file("without.ckpt");
  spec.checkpoint.clear();
  ASSERT_TRUE(write_file(
      spec.resume, [&](const FileSink& sink) { nn::write_checkpoint(without, zeros, sink); }));
  const auto refused = run_training(spec, listener_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
  EXPECT_THAT(refused.error().message, HasSubstr("has no setting 'algorithm_choice'"));
}

/// Five rounds a device are measured in three: a batch that has to divide by the devices again.
TEST_F(TrainTest, ManyRoundsOfSeveralDevicesAreMeasuredInAFew) {
  TrainingSpec spec = tiny(250);
  spec.job.model = "mlp";
  spec.job.batch = 500;
  spec.planner.name = "autoswap";
  spec.job.devices = 4;
  spec.job.sub_batch = spec.job.batch / 20;
  const auto report = run_training(spec, listener_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->rounds, 5);
}

TEST_F(TrainTest, HostBudgetsOfSeveralDevicesHoldForAllTogether) {
  TrainingSpec spec = tiny(90);
  spec.job.model = "mlp";
  spec.job.batch = 500;
  spec.planner.name = "autoswap";
  spec.job.devices = 2;
  const auto without = run_training(spec, listener_);
  ASSERT_TRUE(without) << without.error().message;
  spec.budget.host = without->start.running().host_bytes() + 64 * kKiB;
  testing::forget_opened();
  const auto inside = run_training(spec, listener_);
  ASSERT_TRUE(inside) << inside.error().message;
  EXPECT_THAT(testing::opened_devices(),
              Each(Field(&testing::OpenedArenas::host, Le(spec.budget.host))));
  spec.budget.host = 64;
  const auto refused = run_training(spec, listener_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::infeasible);
}

TEST_F(TrainTest, WhatDoesNotGoWithSeveralDevicesIsRefused) {
  const auto refusal = [&](const TrainingSpec& of) {
    const auto report = run_training(of, listener_);
    return report ? std::string("accepted") : report.error().message;
  };
  TrainingSpec spec = tiny(150);
  spec.job.batch = 500;
  spec.job.devices = 3;
  EXPECT_THAT(refusal(spec), HasSubstr("equal parts for 3 devices"));
  spec.job.devices = 2;
  EXPECT_THAT(refusal(spec), HasSubstr("over 250 samples instead of 500"));
  spec.job.model = "mlp";
  spec.graph = 2;
  EXPECT_THAT(refusal(spec), HasSubstr("`graph`"));
  spec.graph = 0;
  spec.planner.name = "autoswap";
  spec.budget.device.percent = 90;
  spec.job.accumulation = Accumulation::naive;
  EXPECT_THAT(refusal(spec), HasSubstr("the state of weights and a gradient of another device"));
}

TEST_F(TrainTest, ObserversHearOfEveryIterationInOrder) {
  const auto report = run_training(tiny(60), listener_);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_THAT(listener_.iterations, SizeIs(3));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(listener_.iterations[i].number, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(listener_.iterations[i].total, 3);
  }
  EXPECT_GT(listener_.updates, 3);
  EXPECT_EQ(listener_.nesting, 0);
}

TEST_F(TrainTest, AStoppedTrainingIsInterruptedAndSavesWhereItIsAsked) {
  TrainingSpec spec = tiny_epochs(60, 1);
  const auto whole = run_training(spec, listener_);
  ASSERT_TRUE(whole) << whole.error().message;
  spec.checkpoint = folder_.file("c.ckpt");
  testing::Listener impatient;
  impatient.stop_after = 5;
  const auto stopped = run_training(spec, impatient);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::interrupted);
  EXPECT_THAT(stopped.error().message, HasSubstr("`resume` " + spec.checkpoint));
  spec.resume = spec.checkpoint;
  const auto resumed = run_training(spec, listener_);
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->state_crc32, whole->state_crc32);

  testing::Listener hasty;
  hasty.stop_after = 1;
  const auto lost = run_training(tiny(60), hasty);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::interrupted);
  EXPECT_EQ(hasty.nesting, 0);
}

TEST_F(TrainTest, TheSecondTrainingTakesProfileAndPlanFromTheCache) {
  const auto first = run_training(tiny(60), listener_);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->start.profile.from, "measured");
  EXPECT_THAT(listener_.notices, IsEmpty());
  const auto second = run_training(tiny(60), listener_);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->start.profile.from, "cache");
  EXPECT_EQ(second->start.plan.from, "cache");
  EXPECT_THAT(listener_.notices, Contains(Pair(Notice::profile_from_cache, ::testing::_)));
  EXPECT_EQ(second->state_crc32, first->state_crc32);
}

TEST_F(TrainTest, ALossThatIsNoNumberIsSaidOnce) {
  TrainingSpec spec = tiny(60);
  spec.job.learning_rate.base = 1e30;
  spec.iterations = 5;
  const auto report = run_training(spec, listener_);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_THAT(listener_.notices, SizeIs(1));
  EXPECT_EQ(listener_.notices[0].first, Notice::loss_is_not_a_number);
  EXPECT_THAT(listener_.notices[0].second, AllOf(HasSubstr("iteration"), HasSubstr("diverged")));
}

ErrorCode code_of(const TrainingSpec& spec) {
  TrainingObserver observer;
  const auto report = run_training(spec, observer);
  EXPECT_FALSE(report);
  return report ? ErrorCode::runtime : report.error().code;
}

TEST_F(TrainTest, ErrorsSayWhatKindTheyAre) {
  TrainingSpec spec = tiny(60);
  spec.job.model = "tiny-vggg";
  EXPECT_EQ(code_of(spec), ErrorCode::usage);
  spec = tiny(60);
  spec.job.batch = 20'000;
  EXPECT_EQ(code_of(spec), ErrorCode::usage);
  spec = tiny(60);
  spec.resume = "x.ckpt";
  EXPECT_EQ(code_of(spec), ErrorCode::usage);
  spec.epochs = 1;
  EXPECT_EQ(code_of(spec), ErrorCode::bad_input);
  spec = tiny(60);
  spec.graph = 2;
  EXPECT_EQ(code_of(spec), ErrorCode::usage);
  spec = tiny(60);
  spec.budget.device = {.bytes = 1000};
  const auto infeasible = run_training(spec, listener_);
  ASSERT_FALSE(infeasible);
  EXPECT_EQ(infeasible.error().code, ErrorCode::infeasible);
  ASSERT_TRUE(infeasible.error().smallest_feasible);
  EXPECT_THAT(testing::opened_devices(), IsEmpty()) << "nothing half-run";
  spec.budget.device = {.bytes = *infeasible.error().smallest_feasible};
  const auto smallest = run_training(spec, listener_);
  ASSERT_TRUE(smallest) << smallest.error().message;
  EXPECT_LE(largest_arena(), spec.budget.device.bytes);
}

}  // namespace
}  // namespace tidepool
