// Trials of a job on a virtual clock, where what is measured is known.
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "lower/overhead.h"
#include "planning/budget.h"
#include "planning/make_plan.h"
#include "planning/plan_subject.h"
#include "train/late_clock.h"
#include "train/training_run.h"
#include "train/trials.h"
#include "train/trials_fixture.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using testing::TrialsTest;

/// A job whose ops take times drawn at random, and plans for it; nothing runs but on a virtual
/// clock.
class TrialsOfATraining : public TrialsTest {
 protected:
  void begin(const char* planner, double percent, std::uint64_t seed) {
    spec_ = of_capuchin(percent);
    spec_.planner.name = planner;
    spec_.cache.off = true;
    spec_.iterations = 200;
    auto job = Job::make(spec_.job, listener_);
    ASSERT_TRUE(job) << job.error().message;
    job_.emplace(std::move(*job));
    start_ = {};
    start_.machine.set_links({50e6, Nanos{50'000}}, {50e6, Nanos{50'000}});
    start_.machine.set_alignment(job_->alignment());
    truth_ = job_->program();
    Random random(seed);
    for (Op& op : truth_.ops) {
      const Nanos time{100'000 + static_cast<Nanos::rep>(random.below(3'000'000))};
      for (Algorithm& algorithm : op.algorithms) algorithm.time = time;
    }
    planner_ = *make_planner(planner);
    const Bytes peak = unlimited_peak(truth_, start_.machine.alignment());
    start_.budget =
        start_.asked = {static_cast<Bytes>(static_cast<double>(peak) * percent / 100), 0, {}};
  }

  /// The plan that the planner makes by these times, as the start of a training.
  void plan_by(const Program& times) {
    job_->program() = times;
    auto planned = plan(start_.budget);
    ASSERT_TRUE(planned) << planned.error().message;
    start_.plan.planned = std::move(*planned);
    const auto best = plan_terms(spec_.job).best_algorithms(true);
    start_.now.reset();
    start_.predicted_unlimited = unlimited_time(times, start_.machine, best);
    start_.fastest_unlimited = unlimited_time(times, start_.machine, AlgorithmPolicy::fastest);
    start_.gap = {};
  }

  /// What is said of times after trials is by the true ones.
  void expect_one_measure() const {
    const auto ms = [](Nanos time) { return to_ms(time); };
    const auto best = plan_terms(spec_.job).best_algorithms(true);
    // Where an op begins late it does so without a budget too.
    const Nanos late = late_.empty() ? Nanos{0} : late_[0].next;
    Program truth = truth_;
    for (Op& op : truth.ops) {
      for (Algorithm& algorithm : op.algorithms) algorithm.time += late;
    }
    const double unlimited = ms(unlimited_time(truth, start_.machine, best));
    EXPECT_NEAR(ms(start_.predicted_unlimited), unlimited, 0.02 * unlimited);
    EXPECT_EQ(start_.fastest_unlimited, start_.predicted_unlimited) << "all take the same time";
    ASSERT_TRUE(start_.gap.gap) << start_.gap.unknown;
    EXPECT_NEAR(*start_.gap.least_overhead + *start_.gap.gap, start_.predicted_overhead(), 1e-9);
  }

  Result<Planned> plan(const Budget& budget) {
    FixedWorkload workload(job_->program());
    PlannerOptions options = planner_options(plan_terms(spec_.job), spec_.planner);
    options.may.sub_batch = false;
    return make_plan(*planner_, workload, start_.machine, budget, options);
  }

  /// By the true times.
  [[nodiscard]] Nanos time_of(const Plan& plan) const {
    const testing::LateRun all = testing::run_late(truth_, plan, start_.machine, late_, 40);
    return (all.ends[39] - all.ends[19]) / 20;
  }

  /// A block of the plan in `start_`, as it is by the true times. The rest of `Trials::follow`.
  [[nodiscard]] TrialRun run(const TrialBlock& block) const {
    const Plan& plan = start_.lowered().plan;
    const testing::LateRun all = testing::run_late(truth_, plan, start_.machine, late_,
                                                   static_cast<int>(block.iterations) + 5);
    TrialRun run;
    for (std::size_t k = 5; k < all.ends.size(); ++k) {
      run.timings.push_back(all.timings[k]);
      run.times.push_back(all.ends[k] - all.ends[k - 1]);
    }
    if (!block.observed) run.timings.clear();
    return run;
  }

  /// Returns how many iterations it took until the plan was settled.
  std::int64_t run_all(Trials& trials) {
    std::int64_t done = 0;
    while (trials.running()) {
      const TrialBlock block = trials.block();
      const auto went = trials.follow(run(block), spec_.iterations - done - block.iterations);
      done += block.iterations;
      EXPECT_TRUE(went) << went.error().message;
      EXPECT_LE(done, spec_.iterations);
      if (!went) break;
    }
    return done;
  }

  TrainingSpec spec_;
  std::optional<Job> job_;
  Program truth_;
  std::vector<Lateness> late_;  ///< by stream
  std::unique_ptr<Planner> planner_;
  Preparation start_;
};

TEST_F(TrialsOfATraining, EndWithTheFastestOfThosePlansThatRan) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    begin("auto", 60, seed);
    plan_by(truth_);
    const Nanos before = time_of(start_.lowered().plan);
    Trials trials(*job_, spec_, *planner_, start_, listener_);
    ASSERT_TRUE(trials.running());
    run_all(trials);
    EXPECT_LE(time_of(start_.lowered().plan), before);
    const TrialsReport& report = *trials.report();
    ASSERT_FALSE(report.plans.empty());
    EXPECT_EQ(report.plans[0].planner, "auto");
    for (const TriedPlan& plan : report.plans) {
      EXPECT_TRUE(plan.iterations == 0 || plan.measured >= report.plans[report.kept].measured);
    }
    // Where the profile is right so is what was predicted.
    EXPECT_NEAR(to_seconds(*start_.now), to_seconds(time_of(start_.lowered().plan)),
                0.001 * to_seconds(*start_.now));
  }
}

TEST_F(TrialsOfATraining, WithAWrongProfileEndWithAPlanAsGoodAsThatOfARightOne) {
  double sum = 0;
  int count = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    SCOPED_TRACE(seed);
    begin("auto", 50, seed);
    plan_by(truth_);
    const Nanos right = time_of(start_.lowered().plan);
    Program wrong = truth_;
    Random random(seed + 100);
    for (Op& op : wrong.ops) {
      const double factor = std::exp2(2 * random.uniform() - 1);
      for (Algorithm& a : op.algorithms) {
        a.time = Nanos{std::llround(factor * static_cast<double>(a.time.count()))};
      }
    }
    plan_by(wrong);
    start_.profile.from = "file";
    Trials trials(*job_, spec_, *planner_, start_, listener_);
    run_all(trials);
    expect_one_measure();
    const double share = to_seconds(time_of(start_.lowered().plan)) / to_seconds(right);
    EXPECT_LE(share, 1.02);
    EXPECT_NEAR(to_seconds(*start_.now), to_seconds(time_of(start_.lowered().plan)),
                0.01 * to_seconds(*start_.now));
    sum += share;
    ++count;
  }
  EXPECT_LE(sum / count, 1.01);
}

/// The profile knows nothing of how late instructions begin.
TEST_F(TrialsOfATraining, PredictWhatADeviceTakesThatBeginsLate) {
  const auto ms = [](Nanos time) { return to_ms(time); };
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    begin("auto", 60, seed);
    start_.machine.set_links({200e6, Nanos{50'000}}, {200e6, Nanos{50'000}});
    late_ = {{Nanos{100'000}, Nanos{300'000}},
             {Nanos{5'000}, Nanos{80'000}},
             {Nanos{10'000}, Nanos{60'000}}};
    plan_by(truth_);
    Trials trials(*job_, spec_, *planner_, start_, listener_);
    run_all(trials);
    const TrialsReport& report = *trials.report();
    const Nanos after = time_of(start_.lowered().plan);
    EXPECT_NEAR(ms(*start_.now), ms(after), 0.01 * ms(after));
    EXPECT_LT(ms(start_.lowered().iteration_time), 0.97 * ms(after)) << "it decides something";
    expect_one_measure();
    ASSERT_GE(report.late.size(), late_.size());
    for (std::size_t s = 0; s < late_.size(); ++s) {
      EXPECT_EQ(report.late[s].next, late_[s].next) << s;
      EXPECT_EQ(report.late[s].woken, late_[s].woken) << s;
    }
  }
}

TEST_F(TrialsOfATraining, TakeNoMoreIterationsThanThereAre) {
  begin("auto", 60, 1);
  plan_by(truth_);
  const ObtainedPlan first = start_.plan;
  for (const std::int64_t iterations : {12, 13, 20, 40}) {
    SCOPED_TRACE(iterations);
    start_.plan = first;
    start_.now.reset();
    spec_.iterations = iterations;
    Trials trials(*job_, spec_, *planner_, start_, listener_);
    ASSERT_TRUE(trials.running());
    EXPECT_LE(run_all(trials), iterations - Trials::kBlock);
  }
}

/// What trainings left each other of a job whose trials are in the cache.
class TrialsInTheCache : public TrialsOfATraining {
 protected:
  void SetUp() override {
    TrialsOfATraining::SetUp();
    begin("auto", 60, 1);
    spec_.cache.off = false;
    plan_by(truth_);
    planned_ = start_.plan;
  }

  /// As a training begins that asks for the same.
  void begin_again(std::int64_t iterations, Workload* workload = nullptr) {
    spec_.iterations = iterations;
    start_.now.reset();
    start_.plan = planned_;
    PlanTask task{spec_.planner};
    task.tried = true;
    const Profile profile{job_->fingerprint(), job_->program(), start_.machine};
    auto obtained = plan_profile(*planner_, profile, workload, plan_terms(spec_.job), task,
                                 start_.budget, Cache(spec_.cache, listener_), listener_);
    ASSERT_TRUE(obtained) << obtained.error().message;
    if (obtained->tried) start_.plan = std::move(*obtained);
  }

  /// Runs them all, and says what came of it.
  TrialsReport train(std::int64_t iterations) {
    begin_again(iterations);
    Trials trials(*job_, spec_, *planner_, start_, listener_);
    run_all(trials);
    return *trials.report();
  }

  static std::vector<std::string> kept_files() {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_folder())) {
      if (entry.path().filename().string().starts_with("plan-tried-")) {
        files.push_back(entry.path().string());
      }
    }
    return files;
  }

  ObtainedPlan planned_;
};

TEST_F(TrialsInTheCache, GoOnWhereTheIterationsOfAnotherTrainingEnded) {
  const TrialsReport alone = train(12);
  EXPECT_TRUE(alone.cut_short);
  ASSERT_GT(alone.plans.size(), 1U) << alone.text();
  ASSERT_GT(alone.plans[1].iterations, 0U) << alone.text();
  EXPECT_TRUE(alone.for_next);
  EXPECT_THAT(alone.text(), HasSubstr("the iterations ended before all was tried, and the next"));
  ASSERT_THAT(kept_files(), SizeIs(1));

  const TrialsReport rest = train(200);
  ASSERT_TRUE(start_.plan.tried || rest.kept > 0);
  EXPECT_FALSE(rest.earlier) << rest.text();
  EXPECT_EQ(rest.plans[0].planner, alone.plans[alone.kept].planner);
  EXPECT_FALSE(rest.cut_short);
  EXPECT_TRUE(rest.for_next);
  const Nanos kept = rest.plans[rest.kept].measured;

  const TrialsReport none = train(200);
  ASSERT_TRUE(none.earlier) << none.text();
  EXPECT_EQ(none.earlier->measured, kept);
  EXPECT_EQ(*none.earlier->gap.gap, *start_.plan.tried->gap.gap);
}

TEST_F(TrialsInTheCache, AShortTrainingDoesNotTakeThePlaceOfALongOne) {
  const TrialsReport all = train(200);
  EXPECT_TRUE(all.for_next);
  start_.plan = planned_;  // as with `replan`
  start_.now.reset();
  spec_.iterations = 12;
  Trials trials(*job_, spec_, *planner_, start_, listener_);
  run_all(trials);
  EXPECT_TRUE(trials.report()->cut_short);
  EXPECT_FALSE(trials.report()->for_next) << trials.report()->text();
  EXPECT_EQ(train(12).earlier->measured, all.plans[all.kept].measured);
}

TEST_F(TrialsInTheCache, CountForTheRoundsOfAPlannersChoiceToo) {
  start_.chose_sub_batch = true;
  const TrialsReport first = train(200);
  ASSERT_TRUE(first.for_next) << first.text();
  begin_again(200);
  EXPECT_FALSE(start_.plan.tried) << "they are no answer where the rounds are stated";
  for (const bool planned_before : {false, true}) {
    SCOPED_TRACE(planned_before);
    FixedWorkload rounds(job_->program());
    begin_again(200, &rounds);
    ASSERT_TRUE(start_.plan.tried);
    EXPECT_EQ(start_.plan.tried->measured, first.plans[first.kept].measured);
    EXPECT_TRUE(Trials(*job_, spec_, *planner_, start_, listener_).report()->earlier);
  }
}

TEST_F(TrialsInTheCache, FiguresThatCannotBeAreRefusedWithTheNameOfTheirFile) {
  (void)train(200);
  ASSERT_THAT(kept_files(), SizeIs(1));
  const std::string path = kept_files()[0];
  const std::string text = *read_file(path);
  for (const char* field : {"predicted_ns", "unlimited_ns", "measured_ns", "iterations"}) {
    SCOPED_TRACE(field);
    Json file = Json::parse(text);
    file["trial"][field] = 0;
    ASSERT_TRUE(write_file(path, file.dump()));
    listener_ = {};
    begin_again(200);
    EXPECT_FALSE(start_.plan.tried);
    EXPECT_THAT(listener_.notices,
                Contains(Pair(Notice::cache_file_ignored,
                              ::testing::AllOf(HasSubstr(path), HasSubstr(field)))));
  }
}

/// The second plan needs more memory than the first: the device is opened anew, and stays open for
/// the third.
TEST_F(TrialsOfATraining, AHandOverKeepsStateAndIterationInArenasOfAnySize) {
  begin("capuchin", 80, 1);
  plan_by(truth_);
  auto more = plan({start_.budget.device * 9 / 8, 0, {}});
  ASSERT_TRUE(more) << more.error().message;
  const Plan& first = start_.lowered().plan;
  ASSERT_GT(more->lowered.plan.device_bytes(), first.device_bytes());
  const auto train = [&](std::span<const Plan* const> plans) {
    testing::forget_opened();
    TrainingRun run(*job_, start_.machine, *plans[0], *job_->make_runner());
    run.executor().enter();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (i > 0) run.go_on_with(*plans[i], start_.machine, device_config(*plans[i]));
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

TEST_F(TrialsOfATraining, SayWhyThereAreNone) {
  begin("auto", 60, 1);
  plan_by(truth_);
  const auto why = [&](const auto& change) {
    TrainingSpec spec = spec_;
    change(spec);
    return why_not_tried(spec, *job_, start_);
  };
  EXPECT_THAT(why([](TrainingSpec&) {}), IsEmpty());
  EXPECT_THAT(why([](TrainingSpec& s) { s.trials = false; }), HasSubstr("switched off"));
  EXPECT_THAT(why([](TrainingSpec& s) { s.plan = "x"; }), HasSubstr("of a file"));
  EXPECT_THAT(why([](TrainingSpec& s) { s.budget.memory.automatic = true; }), IsEmpty());
  EXPECT_THAT(why([](TrainingSpec& s) { s.iterations = 11; }), HasSubstr("at least 12 `iterat"));
  start_.plan.planned.lowered.streaming = true;
  EXPECT_THAT(why([](TrainingSpec&) {}), HasSubstr("streaming"));
}

}  // namespace
}  // namespace tidepool
