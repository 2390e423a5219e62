// Plans that are corrected by what their instructions took.
#include "train/correction.h"

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "measure/link_speed.h"
#include "planners/registry.h"
#include "planning/budget.h"
#include "planning/make_plan.h"
#include "train/training_fixture.h"
#include "train/training_run.h"
#include "train/training_spec.h"

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

constexpr Nanos kMillisecond = std::chrono::milliseconds(1);

class CorrectionTest : public testing::TrainingTest {
 protected:
  void TearDown() override { testing::pace_links(1); }

  /// From here on links carry a sixteenth of what plans count on. Copies in come late, however long
  /// others keep the processor busy: each takes as long as many ops. Measures the ops before.
  void lie_to(TrainingSpec spec) {
    spec.iterations = 1;
    spec.epochs = 0;
    spec.checkpoint.clear();
    EXPECT_EQ(trained(spec).next_iteration, 1);
    testing::pace_links(1.0 / 16);
    testing::forget_opened();
    listener_ = {};
  }

  static TrainingSpec of_capuchin(double percent) {
    TrainingSpec spec = tiny(percent);
    spec.job.model = "tiny-vgg-plain";
    spec.job.batch = spec.job.sub_batch = 100;
    spec.job.device.link = 400'000'000;
    spec.job.algorithms = AlgorithmPolicy::least_workspace;
    spec.planner.name = "capuchin";
    spec.iterations = 12;
    return spec;
  }

  [[nodiscard]] TrainingReport trained(const TrainingSpec& spec) {
    auto report = run_training(spec, listener_);
    EXPECT_TRUE(report) << report.error().message;
    return report ? std::move(*report) : TrainingReport{};
  }
};

TEST_F(CorrectionTest, TrainsToTheBitsOfTheSamePlanAndOfNoBudget) {
  TrainingSpec spec = of_capuchin(80);
  lie_to(spec);
  spec.cache.replan = true;
  const TrainingReport corrected = trained(spec);
  ASSERT_TRUE(corrected.correction);
  EXPECT_EQ(corrected.correction->why_none, "");
  EXPECT_GT(corrected.correction->tried, 0) << corrected.correction->text();
  EXPECT_GT(corrected.correction->before, Nanos{0});
  EXPECT_LE(corrected.correction->after, corrected.correction->before);
  EXPECT_GT(corrected.measured, Nanos{0});
  EXPECT_THAT(testing::opened_devices(),
              Each(Field(&testing::OpenedArenas::device, Le(corrected.start.budget.device))));
  EXPECT_LE(testing::most_open_at_once(), corrected.start.budget.device);
  EXPECT_LE(corrected.arena_peak, corrected.start.budget.device);
  EXPECT_THAT(corrected.losses, SizeIs(12));
  EXPECT_THAT(listener_.iterations, SizeIs(12));

  spec.correct = false;
  const TrainingReport as_planned = trained(spec);
  EXPECT_EQ(as_planned.correction->text(), "none: switched off");
  EXPECT_EQ(as_planned.losses, corrected.losses);
  EXPECT_EQ(as_planned.state_crc32, corrected.state_crc32);

  spec = of_capuchin(200);
  spec.planner.name = "none";
  const TrainingReport unlimited = trained(spec);
  EXPECT_FALSE(unlimited.correction);
  EXPECT_EQ(unlimited.losses, corrected.losses);
  EXPECT_EQ(unlimited.state_crc32, corrected.state_crc32);
}

/// The plan from the cache is the one that the planner corrects, inside the same host budget.
TEST_F(CorrectionTest, WithPlansFromTheCacheInAHostBudgetBesideATrainingWithoutABudget) {
  TrainingSpec spec = of_capuchin(80);
  spec.correct = false;
  const Bytes host = trained(spec).start.running().host_bytes();
  spec.correct = true;
  spec.budget.host = host;
  lie_to(spec);
  spec.comparison = Comparison::bits;
  const TrainingReport report = trained(spec);
  EXPECT_EQ(report.start.profile.from, "cache");
  EXPECT_THAT(listener_.notices, Contains(Pair(Notice::plan_from_cache, ::testing::_)));
  ASSERT_TRUE(report.correction);
  EXPECT_GT(report.correction->tried, 0) << report.correction->text();
  EXPECT_EQ(report.baseline->identical, true);
  EXPECT_LE(report.start.running().host_bytes(), host);
  EXPECT_LE(report.arena_peak, report.start.budget.device);
}

TEST_F(CorrectionTest, EpochsFromACheckpointGoOnWithTheCorrectedPlan) {
  TrainingSpec spec = of_capuchin(80);
  spec.job.batch = spec.job.sub_batch = 2000;  // five iterations an epoch
  spec.job.device.link = 1'000'000'000;
  spec.correct = false;
  spec.epochs = 3;
  const TrainingReport as_planned = trained(spec);
  spec.epochs = 1;
  spec.checkpoint = folder_.file("c.ckpt");
  EXPECT_EQ(trained(spec).next_iteration, 5);
  lie_to(spec);
  spec.resume = spec.checkpoint;
  spec.epochs = 3;
  spec.evaluate = true;
  spec.correct = true;
  const TrainingReport corrected = trained(spec);
  ASSERT_TRUE(corrected.correction);
  EXPECT_GT(corrected.correction->tried, 0) << corrected.correction->text();
  EXPECT_EQ(corrected.state_crc32, as_planned.state_crc32);
  EXPECT_LE(largest_arena(), corrected.start.budget.device);
  EXPECT_LE(testing::most_open_at_once(), corrected.start.budget.device);
  EXPECT_THAT(corrected.epochs, SizeIs(2));
  EXPECT_TRUE(corrected.epochs.back().test);
}

TEST_F(CorrectionTest, AnInterruptionAfterACorrectionEndsTheTraining) {
  lie_to(of_capuchin(80));
  testing::Listener impatient;
  impatient.stop_after = Correction::kIterations + 1;
  const auto stopped = run_training(of_capuchin(80), impatient);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::interrupted);
  EXPECT_EQ(impatient.nesting, 0);
}

/// A job whose ops take a millisecond each by its profile, and Capuchin's plan for it.
class CorrectionOfATraining : public CorrectionTest {
 protected:
  void SetUp() override {
    CorrectionTest::SetUp();
    spec_ = of_capuchin(80);
    spec_.job.device.link = 100'000'000;
    auto job = Job::make(spec_.job, listener_);
    ASSERT_TRUE(job) << job.error().message;
    job_.emplace(std::move(*job));
    for (Op& op : job_->program().ops) {
      for (Algorithm& algorithm : op.algorithms) algorithm.time = kMillisecond;
    }
    planner_ = *make_planner("capuchin");
    const auto machine = device_machine(*job_, no_limit(), {}, listener_);
    ASSERT_TRUE(machine) << machine.error().message;
    start_.machine = *machine;
    const Bytes peak = unlimited_peak(job_->program(), machine->alignment());
    start_.budget = {peak * 4 / 5, 0, {}};
    auto planned = plan(start_.budget);
    ASSERT_TRUE(planned) << planned.error().message;
    start_.plan.planned = std::move(*planned);
  }

  Result<Planned> plan(const Budget& budget) {
    FixedWorkload workload(job_->program());
    return make_plan(*planner_, workload, start_.machine, budget,
                     planner_options(plan_terms(spec_.job), spec_.planner));
  }

  /// As planned, but that the device waits before each op that a copy in comes for.
  [[nodiscard]] std::vector<std::vector<OpTiming>> timings(Nanos late) const {
    const Plan& plan = start_.lowered().plan;
    const auto& list = plan.steady.instructions;
    std::vector<std::vector<OpTiming>> all;
    Nanos now{1};
    for (int k = 0; k < 5; ++k) {
      auto& iteration = all.emplace_back(list.size());
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (plan.streams[static_cast<std::size_t>(list[i].stream)].kind != StreamKind::compute) {
          continue;
        }
        const bool waits = std::ranges::any_of(list[i].waits, [&](const Wait& wait) {
          const Instruction& x = list[static_cast<std::size_t>(wait.index)];
          return x.kind == InstructionKind::copy && plan.kind_of(x.to) == SpaceKind::device;
        });
        if (waits) now += late;
        iteration[i] = {now, now + kMillisecond};
        now += kMillisecond;
      }
    }
    return all;
  }

  TrainingSpec spec_;
  std::optional<Job> job_;
  std::unique_ptr<Planner> planner_;
  Preparation start_;
};

TEST_F(CorrectionOfATraining, GoesOnUntilThePlannerChangesNothing) {
  const Strategy first = start_.lowered().strategy;
  Correction correction(*job_, spec_, *planner_, start_, listener_);
  ASSERT_TRUE(correction.observes());
  EXPECT_EQ(correction.follow(timings(3 * kMillisecond), 50 * kMillisecond, true), true);
  EXPECT_FALSE(decide_the_same(start_.lowered().strategy, first));
  EXPECT_TRUE(correction.observes());
  EXPECT_EQ(correction.follow(timings(Nanos{0}), 40 * kMillisecond, true), false);
  EXPECT_FALSE(correction.observes());
  EXPECT_FALSE(decide_the_same(start_.lowered().strategy, first));
  EXPECT_EQ(correction.report()->text(),
            "50.00 ms an iteration before, 40.00 ms after: 1 corrected plan tried, number 1 kept");
}

TEST_F(CorrectionOfATraining, GoesBackFromAPlanThatTakesLonger) {
  const Strategy first = start_.lowered().strategy;
  Correction correction(*job_, spec_, *planner_, start_, listener_);
  EXPECT_EQ(correction.follow(timings(3 * kMillisecond), 50 * kMillisecond, true), true);
  EXPECT_EQ(correction.follow(timings(3 * kMillisecond), 51 * kMillisecond, true), true);
  EXPECT_FALSE(correction.observes());
  EXPECT_TRUE(decide_the_same(start_.lowered().strategy, first));
  EXPECT_EQ(
      correction.report()->text(),
      "50.00 ms an iteration before, 50.00 ms after: 1 corrected plan tried, none was faster");
}

TEST_F(CorrectionOfATraining, TriesNoMoreThanSoManyPlansAndNoneThatCannotRun) {
  Correction some(*job_, spec_, *planner_, start_, listener_);
  EXPECT_EQ(some.follow(timings(3 * kMillisecond), 50 * kMillisecond, false), false);
  EXPECT_FALSE(some.observes());
  EXPECT_EQ(some.report()->text(), "none: too few iterations were left for another plan");

  Correction correction(*job_, spec_, *planner_, start_, listener_);
  int tried = 0;
  while (correction.observes()) {
    const auto changed =
        correction.follow(timings(kMillisecond * 3 / 2), (50 - tried) * kMillisecond, true);
    ASSERT_TRUE(changed) << changed.error().message;
    tried += *changed ? 1 : 0;
    ASSERT_LE(tried, Correction::kMost);
  }
  EXPECT_GT(tried, 1);
  EXPECT_EQ(correction.report()->tried, tried);
  EXPECT_EQ(correction.report()->kept, tried);
}

/// The second plan needs more memory than the first: the device is opened anew, and stays open for
/// the third.
TEST_F(CorrectionOfATraining, AHandOverKeepsStateAndIterationInArenasOfAnySize) {
  auto more = plan({start_.budget.device * 9 / 8, 0, {}});
  ASSERT_TRUE(more) << more.error().message;
  const Plan& first = start_.lowered().plan;
  ASSERT_GT(more->lowered.plan.device_bytes(), first.device_bytes());
  const auto train = [&](std::span<const Plan* const> plans) {
    testing::forget_opened();
    TrainingRun run(*job_, start_.machine, *plans[0], *job_->make_runner());
    run.executor().enter();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (i > 0) run.go_on_with(*plans[i], start_.machine);
      EXPECT_EQ(run.run(3, {}, {}).iterations, 3);
    }
    run.executor().exit();
    EXPECT_GE(run.arena_peak(), plans[0]->device_bytes() - start_.machine.alignment());
    return std::pair(run.runner().losses(), checksum(run.runner()));
  };
  const Plan* const same[] = {&first, &first, &first};
  const auto expected = train(same);
  EXPECT_THAT(expected.first, SizeIs(9));
  EXPECT_THAT(testing::opened_devices(), SizeIs(1));
  const Plan* const others[] = {&first, &more->lowered.plan, &first};
  EXPECT_EQ(train(others), expected);
  EXPECT_THAT(testing::opened_devices(), SizeIs(2));
  EXPECT_LE(testing::most_open_at_once(), more->lowered.plan.device_bytes());
}

TEST_F(CorrectionOfATraining, SaysWhyThereIsNone) {
  const auto why = [&](const auto& change) {
    TrainingSpec spec = spec_;
    change(spec);
    return why_not_corrected(spec, *job_, start_);
  };
  EXPECT_THAT(why([](TrainingSpec&) {}), IsEmpty());
  EXPECT_THAT(why([](TrainingSpec& s) { s.correct = false; }), HasSubstr("switched off"));
  EXPECT_THAT(why([](TrainingSpec& s) { s.plan = "x"; }), HasSubstr("of a file"));
  EXPECT_THAT(why([](TrainingSpec& s) { s.budget.memory.automatic = true; }),
              HasSubstr("`memory`"));
  EXPECT_THAT(why([](TrainingSpec& s) { s.iterations = 11; }), HasSubstr("at least 12 `iterat"));
  EXPECT_THAT(why([](TrainingSpec& s) { s.epochs = 1; }), HasSubstr("at least two `epochs`"));
  start_.plan.planned.lowered.streaming = true;
  EXPECT_THAT(why([](TrainingSpec&) {}), HasSubstr("streaming"));
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

TEST_F(CorrectionTest, AProfileOfABusyMachineIsFoundOutAndReplaced) {
  TrainingSpec spec = of_capuchin(80);
  spec.planner.name = "autoswap";
  const TrainingReport measured = trained(spec);
  EXPECT_FALSE(measured.correction);
  slow_down_cached_profiles(10);
  listener_ = {};
  const TrainingReport report = trained(spec);
  EXPECT_EQ(report.start.profile.from, "cache");
  EXPECT_THAT(listener_.notices,
              Contains(Pair(Notice::ops_take_other_times, HasSubstr("in the cache"))));
  EXPECT_TRUE(report.correction);
  EXPECT_EQ(report.state_crc32, measured.state_crc32);
  EXPECT_LT(report.predicted, 5 * measured.predicted);
  EXPECT_LE(report.arena_peak, report.start.budget.device);

  listener_ = {};
  const TrainingReport next = trained(spec);
  EXPECT_LT(next.predicted, 5 * measured.predicted) << "the cache has the times of now";
  EXPECT_EQ(next.state_crc32, measured.state_crc32);
}

TEST_F(CorrectionTest, TrainingsThatAreTooShortSaySo) {
  TrainingSpec spec = of_capuchin(80);
  for (const std::int64_t iterations : {1, 5, 6, 11}) {
    spec.iterations = iterations;
    const TrainingReport report = trained(spec);
    ASSERT_TRUE(report.correction);
    EXPECT_EQ(report.correction->tried, 0);
    EXPECT_EQ(report.correction->text(), "none: it takes at least 12 `iterations`");
    EXPECT_EQ(report.next_iteration, iterations);
  }
}

}  // namespace
}  // namespace tidepool
