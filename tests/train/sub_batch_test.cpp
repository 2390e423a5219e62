// Training in rounds that a planner chose, or that are stated: exact, inside every budget.
#include <cmath>

#include "base/file.h"
#include "base/json.h"
#include "lower/plan_file.h"
#include "planners/registry.h"
#include "train/training_fixture.h"
#include "train/training_spec.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

class SubBatch : public testing::TimedTrainingTest {
 protected:
  static TrainingSpec small(const std::string& model, const std::string& planner) {
    TrainingSpec spec = tiny(60);
    spec.job.model = model;
    spec.job.batch = model == "mlp" ? 480 : 40;  // with less, weights alone are more than 60 %
    spec.planner.name = planner;
    spec.planner.evaluations = 50;
    spec.planner.time_limit = std::chrono::milliseconds(1);  // for gaps, of which nothing is asked
    spec.iterations = 2;
    return spec;
  }

  static void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * std::abs(b[i]));
  }
};

TEST_F(SubBatch, WithEveryPlannerGivesTheBitsOfUnlimitedTrainingInTheSameRounds) {
  for (const char* model : {"tiny-squeezenet", "mlp"}) {
    TrainingSpec whole = small(model, "none");
    whole.budget = {};
    const auto unlimited = run_training(whole, listener_);
    ASSERT_TRUE(unlimited) << unlimited.error().message;
    std::uint32_t bits = 0;
    for (const PlannerInfo& info : planner_list()) {
      SCOPED_TRACE(std::string(model) + " " + std::string(info.name));
      TrainingSpec spec = small(model, std::string(info.name));
      spec.job.sub_batch = spec.job.batch * 2 / 5;
      if (bits == 0) spec.comparison = Comparison::bits;
      const auto report = run_training(spec, listener_);
      if (!report) {
        EXPECT_FALSE(info.meets_every_budget) << report.error().message;
        continue;
      }
      EXPECT_EQ(report->rounds, 3);
      EXPECT_FALSE(report->start.chose_sub_batch);
      if (bits == 0) {
        EXPECT_EQ(report->baseline->identical, true);
        bits = report->state_crc32;
      }
      EXPECT_EQ(report->start.unlimited_peak, unlimited->start.unlimited_peak);
      expect_near(report->losses, unlimited->losses);
      EXPECT_EQ(report->state_crc32, bits);
    }
  }
}

TEST_F(SubBatch, ThatIsChosenIsTrainedExactlyAndInsideTheBudget) {
  for (const char* planner : {"autoswap", "memonger", "none"}) {
    SCOPED_TRACE(planner);
    testing::forget_opened();
    TrainingSpec spec = small("tiny-squeezenet", planner);
    spec.budget.device.percent = 45;
    spec.job.choose_sub_batch = true;
    const auto report = run_training(spec, listener_);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_LE(largest_arena(), report->start.budget.device) << "profiling included";
    EXPECT_TRUE(report->start.chose_sub_batch);
    EXPECT_FALSE(report->start.lowered().streaming);
    EXPECT_EQ(report->start.lowered().strategy.sub_batch, report->sub_batch);
    if (std::string_view(planner) == "none") {
      EXPECT_LT(report->sub_batch, 40);
    }
    // Stated, the same training; that it is measured anew changes no bit.
    TrainingSpec stated = spec;
    stated.job.choose_sub_batch = false;
    stated.job.sub_batch = report->sub_batch;
    stated.comparison = Comparison::bits;
    const auto same = run_training(stated, listener_);
    ASSERT_TRUE(same) << same.error().message;
    EXPECT_TRUE(*same->baseline->identical);
    EXPECT_EQ(same->state_crc32, report->state_crc32);
    EXPECT_EQ(same->losses, report->losses);
  }
}

TEST_F(SubBatch, ASecondTrainingTakesAllThatWasMeasuredAndPlannedFromTheCache) {
  TrainingSpec spec = small("tiny-squeezenet", "none");
  spec.budget.device.percent = 45;
  spec.job.choose_sub_batch = true;
  const auto first = run_training(spec, listener_);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = run_training(spec, listener_);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->start.plan.from, "cache");
  EXPECT_EQ(second->start.profile.from, "cache");
  EXPECT_EQ(second->sub_batch, first->sub_batch);
  EXPECT_EQ(second->state_crc32, first->state_crc32);
  EXPECT_EQ(second->start.lowered().iteration_time, first->start.lowered().iteration_time);
}

/// Whatever the batch, the bound is that of rounds of one sample.
TEST_F(SubBatch, AnyBatchTrainsInAnyBudgetThatOneSampleCanRunIn) {
  Bytes bound = 0;
  for (const std::int64_t batch : {1, 40, 130}) {
    SCOPED_TRACE(batch);
    TrainingSpec spec = small("tiny-squeezenet", "autoswap");
    spec.job.batch = batch;
    spec.job.choose_sub_batch = true;
    spec.iterations = 1;
    spec.budget.device = {.bytes = 64};
    const auto refused = run_training(spec, listener_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::infeasible);
    EXPECT_THAT(refused.error().message, HasSubstr("op '"));
    const Bytes named = refused.error().smallest_feasible.value_or(0);
    // One round reads no sums of the rounds before.
    if (batch == 40) bound = named;
    if (batch == 130) {
      EXPECT_EQ(named, bound);
    }
    spec.budget.device.bytes = named - 1;
    EXPECT_EQ(run_training(spec, listener_).error().code, ErrorCode::infeasible);
    spec.budget.device.bytes = named;
    const auto trained = run_training(spec, listener_);
    ASSERT_TRUE(trained) << trained.error().message;
    EXPECT_LE(trained->arena_peak, named);
    EXPECT_LE(trained->sub_batch, 2) << "of the largest whose bound is the same";
  }
}

TEST_F(SubBatch, BatchNormKeepsTheWholeBatchUnlessRoundsMayChangeTraining) {
  TrainingSpec spec = tiny(60);
  spec.job.batch = 40;
  spec.job.choose_sub_batch = true;
  spec.planner.name = "autoswap";
  const auto whole = run_training(spec, listener_);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_FALSE(whole->start.chose_sub_batch);
  EXPECT_EQ(whole->sub_batch, 40);
  EXPECT_FALSE(whole->round_statistics);
  spec.job.sub_batch_statistics = true;
  spec.planner.name = "none";
  const auto rounds = run_training(spec, listener_);
  ASSERT_TRUE(rounds) << rounds.error().message;
  EXPECT_TRUE(rounds->start.chose_sub_batch);
  EXPECT_LT(rounds->sub_batch, 40);
  EXPECT_TRUE(rounds->round_statistics);
}

TEST_F(SubBatch, ThatWasChosenIsKeptByACheckpoint) {
  TrainingSpec spec = small("tiny-vgg-plain", "none");
  spec.job.batch = 1000;
  spec.budget.device.percent = 45;
  spec.job.choose_sub_batch = true;
  spec.epochs = 2;
  const auto whole = run_training(spec, listener_);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_LT(whole->sub_batch, 1000);
  spec.epochs = 1;
  spec.checkpoint = folder_.file("c.ckpt");
  ASSERT_TRUE(run_training(spec, listener_));
  spec.epochs = 2;
  spec.resume = spec.checkpoint;
  spec.checkpoint.clear();
  spec.planner.name = "autoswap";
  spec.budget.device.percent = 90;  // in which larger rounds would be chosen
  const auto resumed = run_training(spec, listener_);
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->sub_batch, whole->sub_batch);
  EXPECT_EQ(resumed->state_crc32, whole->state_crc32);
  spec.job.choose_sub_batch = false;
  spec.job.sub_batch = 500;
  const auto other = run_training(spec, listener_);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("was saved with sub_batch"));
}

/// Nothing is planned, and nothing measured: the file says it all.
TEST_F(SubBatch, ThatWasChosenIsInThePlanFile) {
  TrainingSpec spec = small("tiny-squeezenet", "none");
  spec.budget.device.percent = 45;
  spec.job.choose_sub_batch = true;
  const auto made = run_training(spec, listener_);
  ASSERT_TRUE(made) << made.error().message;
  testing::Listener quiet;
  auto job = Job::make(spec.job, quiet);
  ASSERT_TRUE(job);
  ASSERT_TRUE(job->set_rounds(made->sub_batch));
  const Lowered& lowered = made->start.lowered();
  const std::string path = folder_.file("plan.json");
  ASSERT_TRUE(
      write_file(path, to_json(PlanFile{made->fingerprint, job->program(), made->start.machine,
                                        made->start.budget.device, 0, lowered.iteration_time,
                                        lowered.compute_time, lowered.strategy, lowered.plan})
                           .dump()));
  TrainingSpec run = small("tiny-squeezenet", "auto");
  run.budget = {};
  run.plan = path;
  run.cache.off = true;
  const auto trained = run_training(run, listener_);
  ASSERT_TRUE(trained) << trained.error().message;
  EXPECT_EQ(trained->sub_batch, made->sub_batch);
  EXPECT_EQ(trained->start.plan.from, "file");
  EXPECT_EQ(trained->start.profile.from, "plan");
  EXPECT_EQ(trained->state_crc32, made->state_crc32);

  const auto expect_refused = [&](const TrainingSpec& other, ErrorCode code,
                                  const std::string& reason) {
    const auto refused = run_training(other, listener_);
    ASSERT_FALSE(refused) << reason;
    EXPECT_EQ(refused.error().code, code);
    EXPECT_THAT(refused.error().message, HasSubstr(reason));
  };
  TrainingSpec other = run;
  other.job.sub_batch = 1;
  expect_refused(other, ErrorCode::bad_input, "in rounds of 1");
  other = run;
  other.job.batch = 41;
  expect_refused(other, ErrorCode::bad_input, "batch 41");
  other = run;
  other.job.model = "mlp";
  expect_refused(other, ErrorCode::bad_input, "'mlp'");
  other = run;
  other.job.device.threads = 2;
  expect_refused(other, ErrorCode::bad_input, "this device is");
  other = run;
  other.budget.device = {.bytes = lowered.plan.device_bytes() - 1};
  expect_refused(other, ErrorCode::infeasible, "the budget is");
}

}  // namespace
}  // namespace tidepool
