// Plans that take turns while a training goes on.
#include "train/trials.h"

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "train/training_spec.h"
#include "train/trials_fixture.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Pair;
using ::testing::SizeIs;

using testing::TrialsTest;

void expect_inside(const TrainingReport& report) {
  EXPECT_THAT(testing::opened_devices(),
              Each(Field(&testing::OpenedArenas::device, Le(report.start.budget.device))));
  EXPECT_LE(testing::most_open_at_once(), report.start.budget.device);
  EXPECT_LE(report.arena_peak, report.start.budget.device);
}

TEST_F(TrialsTest, TrainToTheBitsOfOnePlanAndOfNoBudget) {
  TrainingSpec free = of_capuchin(200);
  free.planner.name = "none";
  const TrainingReport unlimited = trained(free);
  EXPECT_FALSE(unlimited.trials);
  const std::int64_t iterations = free.iterations;
  for (const char* planner : {"auto", "tide", "capuchin"}) {
    SCOPED_TRACE(planner);
    TrainingSpec spec = of_capuchin(80);
    spec.planner.name = planner;
    lie_to(spec);
    spec.cache.replan = true;
    const TrainingReport tried = trained(spec);
    ASSERT_TRUE(tried.trials);
    EXPECT_EQ(tried.trials->why_none, "");
    ASSERT_GT(tried.trials->plans.size(), 1U) << tried.trials->text();
    const TriedPlan& kept = tried.trials->plans[tried.trials->kept];
    std::size_t in_trials = 0;
    for (const TriedPlan& plan : tried.trials->plans) {
      in_trials += plan.iterations;
      EXPECT_GT(plan.predicted, Nanos{0});
      EXPECT_TRUE(plan.iterations == 0 || plan.measured > Nanos{0});
    }
    EXPECT_EQ(kept.planner, tried.start.lowered().plan.planner);
    EXPECT_GT(tried.measured.median, Nanos{0});
    EXPECT_LT(in_trials + tried.measured_iterations, static_cast<std::size_t>(iterations))
        << "what trials measured is not counted";
    expect_inside(tried);
    EXPECT_THAT(tried.losses, SizeIs(iterations));
    EXPECT_THAT(listener_.iterations, SizeIs(iterations));
    EXPECT_EQ(tried.losses, unlimited.losses);
    EXPECT_EQ(tried.state_crc32, unlimited.state_crc32);

    spec.trials = false;
    const TrainingReport as_planned = trained(spec);
    EXPECT_EQ(as_planned.trials->text(), "none: switched off");
    EXPECT_EQ(as_planned.losses, tried.losses);
    EXPECT_EQ(as_planned.state_crc32, tried.state_crc32);
    testing::pace_links(1);
  }
}

/// A swapping planner keeps a plan that only swaps, whoever made it.
TEST_F(TrialsTest, WhoAsksForSwapsGetsNoRecomputation) {
  TrainingSpec spec = of_auto(60);
  spec.planner.name = "tide";
  const TrainingReport report = trained(spec);
  ASSERT_TRUE(report.trials);
  EXPECT_EQ(report.totals.recomputed_ops, 0);
}

TEST_F(TrialsTest, TheNextTrainingBeginsWithThePlanThatWasKept) {
  TrainingSpec spec = of_auto(70);
  spec.iterations = 100;
  const TrainingReport first = trained(spec);
  ASSERT_TRUE(first.trials);
  ASSERT_GT(first.trials->plans.size(), 1U) << first.trials->text();
  spec.iterations = 5;
  const TrainingReport second = trained(spec);
  EXPECT_EQ(second.start.plan.from, "cache");
  ASSERT_TRUE(second.trials);
  ASSERT_TRUE(second.trials->earlier) << second.trials->text();
  EXPECT_EQ(second.trials->earlier->measured, first.trials->plans[first.trials->kept].measured);
  EXPECT_TRUE(decide_the_same(second.start.lowered().strategy, first.start.lowered().strategy));
  EXPECT_EQ(second.start.lowered().plan.planner, first.start.lowered().plan.planner);
  EXPECT_EQ(second.predicted, first.predicted);
  EXPECT_THAT(second.trials->text(), HasSubstr("an earlier training has tried plans"));

  spec.trials = false;
  EXPECT_FALSE(trained(spec).start.plan.tried) << "the plan as the planner makes it";
  spec.trials = true;
  spec.cache.replan = true;
  EXPECT_FALSE(trained(spec).trials->earlier);
  spec.iterations = 100;
  EXPECT_EQ(trained(spec).state_crc32, first.state_crc32);
}

TEST_F(TrialsTest, InAHostBudgetBesideATrainingWithoutABudget) {
  TrainingSpec spec = of_capuchin(80);
  spec.trials = false;
  const Bytes host = trained(spec).start.running().host_bytes();
  spec.trials = true;
  spec.budget.host = host;
  lie_to(spec);
  spec.comparison = Comparison::bits;
  const TrainingReport report = trained(spec);
  EXPECT_EQ(report.start.profile.from, "cache");
  EXPECT_THAT(listener_.notices, Contains(Pair(Notice::plan_from_cache, ::testing::_)));
  ASSERT_TRUE(report.trials);
  EXPECT_GT(report.trials->plans.size(), 1U) << report.trials->text();
  EXPECT_EQ(report.baseline->identical, true);
  EXPECT_LE(report.start.running().host_bytes(), host);
  EXPECT_LE(report.arena_peak, report.start.budget.device);
}

/// Trials go on from one epoch to the next, with evaluations between, from a checkpoint.
TEST_F(TrialsTest, GoOnThroughEpochs) {
  TrainingSpec begun = of_auto(80);
  begun.job.batch = begun.job.sub_batch = 1000;  // ten iterations an epoch
  begun.job.device.link = 1'000'000'000;
  begun.trials = false;
  begun.epochs = 3;
  const TrainingReport as_planned = trained(begun);
  begun.epochs = 1;
  begun.checkpoint = folder_.file("c.ckpt");
  EXPECT_EQ(trained(begun).next_iteration, 10);
  for (const char* planner : {"auto", "capuchin"}) {
    SCOPED_TRACE(planner);
    TrainingSpec spec = begun;
    spec.planner.name = planner;
    lie_to(spec);
    spec.resume = begun.checkpoint;
    spec.checkpoint = folder_.file("later.ckpt");
    spec.overwrite = true;
    spec.epochs = 3;
    spec.evaluate = true;
    spec.trials = true;
    const TrainingReport tried = trained(spec);
    ASSERT_TRUE(tried.trials);
    EXPECT_GT(tried.trials->plans.size(), 1U) << tried.trials->text();
    EXPECT_EQ(tried.state_crc32, as_planned.state_crc32);
    EXPECT_LE(largest_arena(), tried.start.budget.device);
    EXPECT_LE(testing::most_open_at_once(), tried.start.budget.device);
    EXPECT_THAT(tried.epochs, SizeIs(2));
    EXPECT_TRUE(tried.epochs.back().test);
    testing::pace_links(1);
  }
}

TEST_F(TrialsTest, AnInterruptionEndsTheTrainingWhereverItIs) {
  lie_to(of_auto(80));
  for (const std::int64_t after : {2, 4, 5, 8, 13}) {
    SCOPED_TRACE(after);
    testing::Listener impatient;
    impatient.stop_after = after;
    const auto stopped = run_training(of_auto(80), impatient);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::interrupted);
    EXPECT_EQ(impatient.nesting, 0);
  }
}

/// Multiplies all times of the profiles in the cache: as if they were measured on a busy machine.
void slow_down_cached_profiles(std::int64_t factor) {
  int changed = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_folder())) {
    if (!entry.path().filename().string().starts_with("profile")) continue;
    Json file = Json::parse(*read_file(entry.path().string()));
    for (Json& op : file["program"]["ops"]) {
      for (Json& algorithm : op["algorithms"]) {
        algorithm["time_ns"] = factor * algorithm["time_ns"].get<std::int64_t>();
      }
    }
    ASSERT_TRUE(write_file(entry.path().string(), file.dump()));
    ++changed;
  }
  EXPECT_GT(changed, 0);
}

TEST_F(TrialsTest, AProfileOfABusyMachineIsFoundOutAndReplaced) {
  TrainingSpec spec = of_capuchin(80);
  spec.planner.name = "autoswap";
  const TrainingReport measured = trained(spec);
  EXPECT_FALSE(measured.trials);
  // By more than a machine becomes busier or quieter meanwhile.
  slow_down_cached_profiles(1000);
  listener_ = {};
  const TrainingReport report = trained(spec);
  EXPECT_EQ(report.start.profile.from, "cache");
  EXPECT_THAT(listener_.notices,
              Contains(Pair(Notice::ops_take_other_times, HasSubstr("in the cache"))));
  EXPECT_TRUE(report.trials);
  EXPECT_EQ(report.state_crc32, measured.state_crc32);
  EXPECT_LT(report.predicted, 100 * measured.predicted);
  EXPECT_LE(report.start.fastest_unlimited, report.start.predicted_unlimited);
  EXPECT_LE(report.arena_peak, report.start.budget.device);

  listener_ = {};
  const TrainingReport next = trained(spec);
  EXPECT_LT(next.predicted, 100 * measured.predicted) << "the cache has the times of now";
  EXPECT_EQ(next.state_crc32, measured.state_crc32);
}

TEST_F(TrialsTest, TrainingsThatAreTooShortSaySo) {
  TrainingSpec spec = of_auto(80);
  for (const std::int64_t iterations : {1, 5, 11}) {
    spec.iterations = iterations;
    const TrainingReport report = trained(spec);
    ASSERT_TRUE(report.trials);
    EXPECT_THAT(report.trials->plans, IsEmpty());
    EXPECT_EQ(report.trials->text(), "none: it takes at least 12 `iterations`");
    EXPECT_EQ(report.next_iteration, iterations);
  }
}

}  // namespace
}  // namespace tidepool
