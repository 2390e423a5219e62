// Plans that take turns where the process has a limit, or a file lies behind its host.
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/system_memory.h"
#include "support/disks.h"
#include "train/training_fixture.h"
#include "train/training_spec.h"
#include "train/trial_room.h"

namespace tidepool {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::Ge;
using ::testing::Le;
using ::testing::SizeIs;

class TrialsInMemory : public testing::TimedTrainingTest {
 protected:
  void TearDown() override { testing::pace_disk(0); }

  /// On a disk that is said to be so fast, in about three quarters of the memory it would take.
  [[nodiscard]] TrainingSpec spilling(const char* planner) {
    testing::pace_disk(0);
    TrainingSpec spec = without_limits(planner);
    spec.job.device.link = 0;
    spec.job.device.spill.folder = disk_.path();
    spec.job.device.spill.write_speed = spec.job.device.spill.read_speed = kStated;
    spec.job.device.spill.verify = true;
    spec.budget.memory.bytes = kMiB;
    const auto refused = run_training(spec, listener_);
    EXPECT_FALSE(refused);
    EXPECT_TRUE(refused.error().smallest_feasible) << refused.error().message;
    spec.budget.memory.bytes = refused.error().smallest_feasible.value_or(kGiB) + kMore;
    testing::forget_opened();
    listener_ = {};
    return spec;
  }
  /// Of five iterations an epoch.
  static TrainingSpec without_limits(const char* planner) {
    TrainingSpec spec = tiny(-1);
    spec.budget = {};
    spec.job.model = "tiny-vgg-plain";
    spec.job.batch = spec.job.sub_batch = 2000;
    spec.job.algorithms = AlgorithmPolicy::least_workspace;
    spec.planner.name = planner;
    spec.planner.evaluations = 100;
    spec.iterations = 16;
    spec.cache.off = true;
    return spec;
  }
  /// The disk is slower than it is said to be, from here on.
  static void slow_down() { testing::pace_disk(kStated / 8); }

  [[nodiscard]] TrainingReport trained(const TrainingSpec& spec) {
    auto report = run_training(spec, listener_);
    EXPECT_TRUE(report) << report.error().message;
    return report ? std::move(*report) : TrainingReport{};
  }
  /// The same where plans took turns, each inside of what there is.
  [[nodiscard]] TrainingReport tried(const TrainingSpec& spec) {
    testing::forget_opened();
    listener_ = {};
    TrainingReport report = trained(spec);
    EXPECT_TRUE(report.trials && report.trials->why_none.empty());
    EXPECT_GE(plans_that_ran(report), 2);
    // The first was opened to measure, before it was known how much there is.
    const std::vector<testing::OpenedArenas> opened = testing::opened_devices();
    EXPECT_THAT(std::span(opened).subspan(1),
                Each(Field(&testing::OpenedArenas::device, Le(report.start.asked.device))));
    EXPECT_LE(report.arena_peak, report.start.asked.device);
    return report;
  }
  static std::ptrdiff_t plans_that_ran(const TrainingReport& report) {
    if (!report.trials) return 0;
    return std::ranges::count_if(report.trials->plans,
                                 [](const TriedPlan& plan) { return plan.iterations > 0; });
  }

  static constexpr double kStated = 1.6e9;
  static constexpr Bytes kMore = 9 * kMiB;
  testing::DiskFolder disk_;
};

TEST_F(TrialsInMemory, TrainToTheBitsOfOnePlanAndOfNoLimit) {
  const TrainingReport free = trained(without_limits("none"));
  EXPECT_FALSE(free.file);
  TrainingSpec spec = spilling("auto");
  slow_down();
  const TrainingReport several = tried(spec);
  ASSERT_TRUE(several.memory);
  EXPECT_EQ(several.memory->process.host, several.start.running().host_bytes());
  ASSERT_TRUE(several.file);
  EXPECT_EQ(several.file->iterations, spec.iterations);
  EXPECT_GT(several.file->traffic.written.bytes, 0);
  EXPECT_GT(several.file->traffic.read.bytes, 0);
  EXPECT_THAT(several.losses, SizeIs(spec.iterations));
  EXPECT_THAT(listener_.iterations, SizeIs(spec.iterations));
  // To measure, to begin, and once more after each time that something was planned.
  EXPECT_THAT(testing::opened_devices(), SizeIs(Ge(4U)));

  spec = spilling("auto");  // this process has grown
  spec.trials = false;
  const TrainingReport as_planned = trained(spec);
  EXPECT_EQ(as_planned.trials->text(), "none: switched off");
  EXPECT_EQ(as_planned.losses, several.losses);
  EXPECT_EQ(as_planned.state_crc32, several.state_crc32);
  EXPECT_EQ(free.losses, several.losses);
  EXPECT_EQ(free.state_crc32, several.state_crc32);
}

TEST_F(TrialsInMemory, GoOnThroughEpochsAndFromACheckpointOfAnInterruption) {
  TrainingSpec spec = without_limits("none");
  spec.epochs = 3;
  spec.evaluate = true;
  const TrainingReport whole = trained(spec);
  // Between two plans, and after the end of an epoch.
  for (const std::int64_t after : {4, 9}) {
    SCOPED_TRACE(after);
    spec = spilling("tide");
    spec.epochs = 3;
    spec.evaluate = true;
    spec.checkpoint = folder_.file("c.ckpt");
    spec.overwrite = true;
    slow_down();
    testing::Listener impatient;
    impatient.stop_after = after;
    const auto stopped = run_training(spec, impatient);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::interrupted);
    EXPECT_EQ(impatient.nesting, 0);
    const std::string checkpoint = spec.checkpoint;
    spec = spilling("tide");
    spec.epochs = 3;
    spec.evaluate = true;
    spec.resume = checkpoint;
    slow_down();
    const TrainingReport resumed = trained(spec);
    EXPECT_EQ(resumed.state_crc32, whole.state_crc32);
    ASSERT_TRUE(resumed.epochs.back().test);
    EXPECT_EQ(resumed.epochs.back().test->accuracy, whole.epochs.back().test->accuracy);
  }
}

/// State that a trial finds is what a training without one has, and each tier stays inside its
/// limit.
TEST_F(TrialsInMemory, WithAFileBehindTheHost) {
  testing::pace_disk(0);
  TrainingSpec spec = without_limits("auto");
  spec.job.batch = spec.job.sub_batch = 500;
  spec.job.device.link = 4'000'000'000;
  spec.budget.device = {.bytes = 0, .percent = 50};
  spec.trials = false;
  const TrainingReport in_two_tiers = trained(spec);
  spec.budget.host = in_two_tiers.start.running().host_bytes() / 2;
  spec.job.device.file_tier.folder = disk_.path();
  spec.job.device.file_tier.write_speed = spec.job.device.file_tier.read_speed = 4e9;
  spec.job.device.file_tier.verify = true;
  spec.trials = true;
  testing::forget_opened();
  testing::pace_disk(2e8);
  const TrainingReport several = tried(spec);
  EXPECT_THAT(testing::opened_devices(),
              Each(Field(&testing::OpenedArenas::host, Le(spec.budget.host))));
  ASSERT_TRUE(several.file);
  EXPECT_EQ(several.file->iterations, spec.iterations);
  EXPECT_GT(several.file->traffic.read.bytes, 0);
  EXPECT_EQ(several.losses, in_two_tiers.losses);
  EXPECT_EQ(several.state_crc32, in_two_tiers.state_crc32);
}

class TrialRoomTest : public testing::TrainingTest {
 protected:
  void SetUp() override {
    testing::TrainingTest::SetUp();
    TrainingSpec spec = tiny(80);
    auto job = Job::make(spec.job, listener_);
    ASSERT_TRUE(job) << job.error().message;
    job_.emplace(std::move(*job));
    const Bytes now = resident_beside_arenas();
    memory_ = {now + 64 * kMiB, now, kMiB, 0, 0};
  }
  static Plan plan_of(Bytes device, Bytes host) {
    Plan plan;
    plan.device_bytes() = device;
    plan.host_bytes() = host;
    return plan;
  }

  static bool holds(const TrialRoom& room, std::initializer_list<Plan> plans, Bytes observed = 0) {
    std::vector<const Plan*> in_turn;
    for (const Plan& plan : plans) in_turn.push_back(&plan);
    return room.holds(in_turn, observed);
  }
  static Result<void> nothing() { return {}; }

  std::optional<Job> job_;
  ProcessMemory memory_;
};

TEST_F(TrialRoomTest, HoldsWhatFitsBesideAllElse) {
  int closed = 0;
  TrialRoom room(*job_, &memory_, [&] { ++closed; });
  EXPECT_TRUE(room.lend(nothing));
  EXPECT_EQ(closed, 1);
  // The rest is room for what the heap loses.
  EXPECT_TRUE(holds(room, {plan_of(40 * kMiB, kMiB)}));
  EXPECT_FALSE(holds(room, {plan_of(50 * kMiB, kMiB)}));
  EXPECT_FALSE(holds(room, {plan_of(40 * kMiB, 20 * kMiB)}));
  EXPECT_FALSE(holds(room, {plan_of(40 * kMiB, kMiB)}, 20 * kMiB));
  EXPECT_TRUE(holds(room, {plan_of(10 * kMiB, 20 * kMiB)}));
  EXPECT_FALSE(holds(room, {plan_of(10 * kMiB, 20 * kMiB), plan_of(40 * kMiB, kMiB)}))
      << "they have one device in turn";
  const Plan evaluation = plan_of(50 * kMiB, 0);
  TrialRoom shared(
      *job_, &memory_, [] {}, &evaluation);
  EXPECT_TRUE(shared.lend(nothing));
  EXPECT_FALSE(holds(shared, {plan_of(40 * kMiB, kMiB)})) << "with that of evaluations, too";
}

TEST_F(TrialRoomTest, WhatIsLeftOnTheHeapTakesOfIt) {
  TrialRoom room(*job_, &memory_, [] {});
  EXPECT_TRUE(room.lend(nothing));
  const Budget all{46 * kMiB, 0, {}};
  const Bytes before = room.inside(all).device;
  EXPECT_GT(before, 40 * kMiB);
  std::vector<char> left;
  EXPECT_TRUE(room.lend([&] {
    left.assign(24 * kMiB, 1);
    return Result<void>();
  }));
  EXPECT_EQ(left[kMiB], 1);
  EXPECT_LT(room.inside(all).device, before - 15 * kMiB);
  EXPECT_FALSE(holds(room, {plan_of(40 * kMiB, kMiB)}));
  room.keep(plan_of(10 * kMiB, 2 * kMiB));
  EXPECT_EQ(memory_.host, 2 * kMiB);
}

/// Small blocks, which the allocator keeps for whoever asks next.
TEST_F(TrialRoomTest, WhatPlanningHasGivenBackTakesNothing) {
  TrialRoom room(*job_, &memory_, [] {});
  EXPECT_TRUE(room.lend(nothing));
  const Bytes before = resident_memory().all();
  EXPECT_TRUE(room.lend([&] {
    std::vector<std::string> blocks(24 * 1024, std::string(1000, 'x'));
    EXPECT_GT(resident_memory().all(), before + 20 * kMiB);
    return Result<void>();
  }));
  EXPECT_LT(resident_memory().all(), before + 4 * kMiB);
}

TEST_F(TrialRoomTest, ThereIsEnoughWhereNothingIsLimited) {
  TrialRoom room;
  EXPECT_TRUE(room.lend(nothing));
  EXPECT_TRUE(holds(room, {plan_of(kNoDeviceLimit, kGiB)}, kGiB));
  EXPECT_EQ(room.inside(no_limit()), no_limit());
  EXPECT_FALSE(room.ends({}).requested());
}

}  // namespace
}  // namespace tidepool
