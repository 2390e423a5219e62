#include "train/disk_drift.h"

#include "cost/spill.h"
#include "lower/time_plan.h"
#include "support/disks.h"
#include "train/preparation.h"
#include "train/training_fixture.h"
#include "train/training_spec.h"

namespace tidepool {
namespace {

/// Writes 100 MB/s and reads 200, with a latency of 1 ms.
Machine drift_machine() {
  SpillLink link;
  link.write = {100e6, Nanos{1'000'000}};
  link.read = {200e6, Nanos{1'000'000}};
  link.memory = {1e9, Nanos{0}};
  return with_spill(Machine{}, link);
}

/// Iterations of 10 copies of 10 MB each way.
class Iterated {
 public:
  explicit Iterated(const Machine& machine) : drift(machine) { drift.begin(traffic_); }
  void run(int iterations, double write_ms, double read_ms) {
    for (int i = 0; i < iterations; ++i) {
      add(traffic_.written, write_ms);
      add(traffic_.read, read_ms);
      drift.iteration(traffic_);
    }
  }
  DiskDrift drift;

 private:
  static void add(FileTraffic::Direction& way, double ms) {
    way.bytes += 10'000'000;
    way.copies += 10;
    way.time += from_seconds(ms * 1e-3);
  }
  FileTraffic traffic_;
};

TEST(DiskDrift, SeesWhatDiffersByMoreThanAQuarterInTheMedianOfFive) {
  Iterated as_planned(drift_machine());
  as_planned.run(20, 110, 60);  // with the latencies
  EXPECT_FALSE(as_planned.drift.change());
  as_planned.run(2, 300, 300);
  EXPECT_FALSE(as_planned.drift.change()) << "two of five";
  as_planned.run(1, 300, 60);
  const auto change = as_planned.drift.change();
  ASSERT_TRUE(change);
  EXPECT_NEAR(change->write.measured, 10e6 / 0.290, 1e5) << "without the latencies";
  EXPECT_FALSE(change->read.changed());
  EXPECT_EQ(change->text(), "writes 34 MB/s where the plan counts on 100 MB/s");
  as_planned.run(3, 110, 60);
  EXPECT_FALSE(as_planned.drift.change()) << "it is over";
}

TEST(DiskDrift, LatenciesThatAreLessThanPlannedAreNoFasterDisk) {
  Iterated paced(drift_machine());
  paced.run(5, 100, 50);  // no latency at all
  EXPECT_FALSE(paced.drift.change());
  paced.run(5, 85, 38);
  const auto change = paced.drift.change();
  ASSERT_TRUE(change);
  EXPECT_FALSE(change->write.changed());
  EXPECT_NEAR(change->read.measured, 200e6 * 50 / 38, 1e5);
}

/// Regression: latencies were counted at the speed that was planned, so a disk that was said to be
/// many times as fast as it is was still said to be far too fast.
TEST(DiskDrift, SpeedsThatWereFarOffAreFoundAtOnce) {
  SpillLink link;
  link.write = link.read = {1e12, Nanos{1'000'000}};
  link.memory = {1e9, Nanos{0}};
  Iterated stated(with_spill(Machine{}, link));
  stated.run(5, 110, 60);
  const auto change = stated.drift.change();
  ASSERT_TRUE(change);
  EXPECT_NEAR(change->write.measured, 100e6, 1e5);
  EXPECT_NEAR(change->read.measured, 200e6, 1e5);
}

TEST(DiskDrift, IsNewsOnce) {
  Iterated slow(drift_machine());
  slow.run(4, 500, 500);
  EXPECT_FALSE(slow.drift.news()) << "of fewer than five nothing is said";
  slow.run(1, 500, 500);
  EXPECT_TRUE(slow.drift.news());
  slow.run(1, 500, 500);
  EXPECT_FALSE(slow.drift.news());
  EXPECT_TRUE(slow.drift.change());
}

TEST(DiskDrift, NothingChangesWithoutAFile) {
  Iterated none(Machine{});
  none.run(10, 500, 500);
  EXPECT_FALSE(none.drift.change());
}

class DriftingTraining : public testing::TimedTrainingTest {
 protected:
  void TearDown() override { testing::say_disk_speed(0); }

  /// On a disk that is as fast as this, in little more memory than what is needed.
  [[nodiscard]] TrainingSpec spilling(double speed, std::int64_t epochs) {
    TrainingSpec spec = tiny(-1);
    spec.job.model = "mlp";
    spec.job.batch = 1000;  // ten iterations an epoch
    spec.job.device.link = 0;
    spec.job.sub_batch = spec.job.batch;
    spec.job.algorithms = AlgorithmPolicy::least_workspace;
    spec.job.device.spill.folder = disk_.path();
    spec.job.device.spill.write_speed = spec.job.device.spill.read_speed = speed;
    spec.budget = {};
    spec.planner.name = "tide";
    spec.planner.evaluations = 300;
    spec.trials = false;  // they would plan for the disk as it is themselves
    spec.epochs = epochs;
    spec.cache.off = true;
    spec.budget.memory.bytes = kMiB;
    const auto refused = run_training(spec, listener_);
    EXPECT_FALSE(refused);
    EXPECT_TRUE(refused.error().smallest_feasible) << refused.error().message;
    spec.budget.memory.bytes = refused.error().smallest_feasible.value_or(kGiB) + kRoom;
    testing::say_disk_speed(speed);
    return spec;
  }

  static constexpr Bytes kRoom = 3 * kMiB;
  /// So slow that copies hide behind no op, on no machine.
  static constexpr double kSlow = 4e4;
  testing::DiskFolder disk_;
};

/// Regression: it failed where other processes kept the disk or the processors busy.
TEST_F(DriftingTraining, PlansAgainForTheNextEpochAndEndsBitForBitTheSame) {
  const auto as_planned = run_training(spilling(4e8, 2), listener_);
  ASSERT_TRUE(as_planned) << as_planned.error().message;
  ASSERT_TRUE(as_planned->memory);
  ASSERT_GT(as_planned->file->traffic.written.bytes, 0);
  EXPECT_TRUE(as_planned->file->drifts.empty());

  listener_.notices.clear();
  const TrainingSpec spec = spilling(4e8, 2);
  testing::say_disk_speed(kSlow);
  const auto drifted = run_training(spec, listener_);
  ASSERT_TRUE(drifted) << drifted.error().message;
  ASSERT_EQ(drifted->file->drifts.size(), 1);
  const DriftReport& drift = drifted->file->drifts.front();
  EXPECT_GE(drift.iteration, 5);
  EXPECT_NEAR(drift.disk.write.measured, kSlow, 0.01 * kSlow);
  ASSERT_TRUE(drift.planned_again);
  EXPECT_GT(*drift.planned_again, drift.predicted) << "the disk is slower";
  EXPECT_EQ(drifted->start.machine.to_away().bytes_per_second, drift.disk.write.measured);
  EXPECT_EQ(std::ranges::count(listener_.notices, Notice::disk_speed_changed,
                               &std::pair<Notice, std::string>::first),
            1);
  EXPECT_EQ(drifted->state_crc32, as_planned->state_crc32);
}

/// Regression: planned again after every epoch on a disk whose speed varies, for nothing.
TEST_F(DriftingTraining, WhereCopiesTakeNoTimeOnTheDiskAsItIsThePlanGoesOn) {
  const TrainingSpec spec = spilling(4e8, 1);
  auto trained = run_training(spec, listener_);
  ASSERT_TRUE(trained) << trained.error().message;
  const auto job = Job::make(spec.job, listener_);
  ASSERT_TRUE(job) << job.error().message;
  const DiskChange slower{{4e8, 1e8}, {4e8, 2e8}};
  Preparation& start = trained->start;
  Machine machine = start.machine;
  for (Link& link : machine.links) {
    if (link.to == machine.away()) link.speed.bytes_per_second = 1e8;
    if (link.from == machine.away()) link.speed.bytes_per_second = 2e8;
  }
  const Nanos time = time_plan(job->program(), start.lowered().plan, machine).iteration_time;
  start.predicted_unlimited = time - time / 200;
  EXPECT_TRUE(hides_copies(*job, slower, start));
  start.predicted_unlimited = time - time / 50;
  EXPECT_FALSE(hides_copies(*job, slower, start));
}

TEST_F(DriftingTraining, InterruptedWhilePlanningAgainItIsSavedAndGoesOn) {
  const std::string checkpoint = folder_.file("c.ckpt");
  const auto whole = run_training(spilling(4e8, 2), listener_);
  ASSERT_TRUE(whole) << whole.error().message;
  TrainingSpec spec = spilling(4e8, 2);  // this process has grown
  spec.checkpoint = checkpoint;
  testing::say_disk_speed(kSlow);
  /// Stops as soon as it is told that planning begins again.
  class Stopper : public testing::Listener {
   public:
    void update(double, std::string_view what) override {
      stop = stop || what == "planning for the disk as it is now";
    }
    [[nodiscard]] bool stop_requested() const override { return stop; }
    bool stop = false;
  } stopper;
  const auto stopped = run_training(spec, stopper);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::interrupted) << stopped.error().message;
  EXPECT_TRUE(stopper.stop);
  spec.budget = spilling(4e8, 2).budget;
  spec.resume = checkpoint;
  const auto resumed = run_training(spec, listener_);
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->state_crc32, whole->state_crc32);
}

}  // namespace
}  // namespace tidepool
